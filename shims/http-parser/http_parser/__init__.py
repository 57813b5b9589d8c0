"""``http_parser.http.HttpParser`` as pymesos uses it, on top of httptools."""
