"""Games in a browser: one page, one websocket, people and agents in one game (`magrounding serve`, extra `web`)."""
