"""What requests and answers look like on the wire.

Requests are validated by these models; answers are only documented by them, since pushing
thousands of floats through validation would cost more than making them.
"""
