"""Make a city of streets with panoramas, routes and instructions, in the files of Touchdown."""
