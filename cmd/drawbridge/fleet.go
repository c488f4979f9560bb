package main

import (
	"context"
	"strings"
	"sync"

	"drawbridge/web/console"
)

// startBeating shows the other processes that this one lives. The function that
// it returns ends that.
func startBeating(ctx context.Context, s *services) func() {
	var roles []string
	for _, role := range s.settings.Roles {
		roles = append(roles, string(role))
	}
	s.process = s.fleet.New(roles, version)
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var beating sync.WaitGroup
	beating.Go(func() { s.fleet.Run(ctx, s.process) })
	return func() {
		cancel()
		beating.Wait()
	}
}

// systemFacts are what the console shows of the configuration. A bucket's
// address may hold credentials, so only its kind is shown.
func systemFacts(s *services) console.SystemFacts {
	kind, _, _ := strings.Cut(blobURL(s.settings), "://")
	return console.SystemFacts{
		KeyIDs: s.keys.IDs(), MailServer: s.settings.SMTPURL != "",
		Bucket: map[string]string{"file": "a folder", "s3": "an S3 bucket"}[kind],
	}
}
