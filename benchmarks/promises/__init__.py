"""What Panewise itself claims about speed and answering times. No paper gives these bounds."""
