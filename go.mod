module partidor.dev/partidor

go 1.26.0
