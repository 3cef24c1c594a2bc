"""People who play, at a terminal or in a browser, and studies with them."""
