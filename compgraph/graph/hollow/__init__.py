"""Arrays that refuse: a node's own memory holds no numbers while a function is differentiated, so that none are taken unseen."""
