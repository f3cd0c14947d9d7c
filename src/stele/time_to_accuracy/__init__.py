"""Time to accuracy: trainings from several seeds, their times by two definitions, their cost, and what they show.

seeds      train each seed in a fresh process, in turns, and continue after an interruption
summary    the times of a training as DAWNBench and as MLPerf define them; what the trainings of one environment show
prices     prices of machines, with their dates
ablation   one trick after the other
"""
