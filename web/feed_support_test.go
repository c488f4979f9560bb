package web_test

import "drawbridge/internal/app/apptest"

func Publish(*apptest.Server) {}

func Publishing(*apptest.Server) func() { return func() {} }
