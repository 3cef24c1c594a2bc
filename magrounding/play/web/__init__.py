"""Games in a browser: one page, one websocket, people and agents in the same game (`magrounding serve`, extra `web`)."""
