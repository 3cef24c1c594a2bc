"""relread, the reader that relates: the network, and what it makes of manuals, motion and the map around an agent."""
