"""Playing many games with trained agents, and the statistics, reports and plots made of them."""
