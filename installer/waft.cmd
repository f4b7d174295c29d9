@rem Starts the version of waft in this script's directory, regardless of the active version.
@"%~dp0start.cmd" %*
