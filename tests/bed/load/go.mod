module status-reporter/tests/bed/load

go 1.24.0
