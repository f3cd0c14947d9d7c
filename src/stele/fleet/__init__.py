"""A fleet: cells are measured on several machines, with Ray, or as a Slurm array with submitit.

``work`` says what a node does and what it needs for that. ``node`` measures a cell on a node, and ``slots`` keeps two
measurements on a machine apart. ``stepwise`` runs a gate so that each pass is one call. ``campaign`` is the folder of a
command: what is wanted, and what is measured; a command that was killed continues from there. ``cluster`` connects to
Ray, ``joining`` starts a head or adds a machine, and ``guard`` ends what a killed command left behind. ``dispatch``
submits work to Ray, ``gates`` runs a gate on one node of each device type, ``nights`` measures releases, and ``slurm``
submits an array. ``status`` shows what runs where. Ray schedules, retries and places; nothing of that is written
again here.
"""
