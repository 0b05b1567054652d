-- Removes the inbox with every event in it; what was accepted before would be accepted anew.

DROP TABLE effects;

DROP TABLE inbox;
