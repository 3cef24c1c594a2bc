"""DRRN (He et al. 2016): a value for each text to choose from; word pieces, and texts that begin alike read once."""
