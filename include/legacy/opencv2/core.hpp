// Empty: many layers include OpenCV and use nothing of it. One that does fails to compile.
