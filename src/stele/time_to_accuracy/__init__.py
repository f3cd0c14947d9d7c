"""Time to accuracy: trainings from several seeds, their times by two definitions, their cost, and what they show.

clock      the times of a training as DAWNBench and as MLPerf define them
seeds      train each seed in a fresh process, and continue after an interruption
summary    what the trainings of one environment show
prices     prices of machines, with their dates
ablation   one trick after the other
"""
