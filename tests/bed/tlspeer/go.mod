module status-reporter/tests/tlspeer

go 1.24
