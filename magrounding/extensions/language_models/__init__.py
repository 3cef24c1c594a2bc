"""Language models as players: they read what an agent sees, in words, and reply with its move.

Any endpoint of the OpenAI form will do (`endpoint.py`). `models.py` has the options of a model and the file that names
some, `prompts.py` what is asked and how a reply is read, `dialogue.py` the messages of a game, `player.py` the actor,
`calls.py` what was asked and what it took, `open_game.py` games that another program plays by replies.
"""
