"""Systems that decide iteration by iteration: what runs next is chosen online, then written down as a program."""
