package document

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"net/url"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// s3Retries bounds how often one request to S3 is tried. A partner waits for the answer, so giving
// up early beats a long silence.
const s3Retries = 4

// s3Bucket is a bucket in S3-compatible storage.
type s3Bucket struct {
	client minio.Core
	name   string
	prefix string
}

// openS3 builds the client of an s3:// URL without connecting.
func openS3(location *url.URL) (Bucket, error) {
	settings, err := s3Settings(location)
	if err != nil {
		return nil, err
	}
	keys, err := s3Credentials(location.User, settings["credentials"])
	if err != nil {
		return nil, err
	}
	endpoint, err := url.Parse(settings["endpoint"])
	if err != nil || endpoint.Host == "" || strings.Trim(endpoint.Path, "/") != "" ||
		(endpoint.Scheme != "https" && endpoint.Scheme != "http") {
		return nil, errors.New("bucket URL: endpoint must be https://host[:port]")
	}
	client, err := minio.New(endpoint.Host, &minio.Options{
		Creds:      keys,
		Secure:     endpoint.Scheme == "https",
		Region:     settings["region"],
		MaxRetries: s3Retries,
	})
	if err != nil {
		return nil, fmt.Errorf("bucket URL: %w", err)
	}
	return &s3Bucket{
		client: minio.Core{Client: client},
		name:   location.Host,
		prefix: settings["prefix"],
	}, nil
}

// s3Settings returns the query of an s3:// URL over its defaults. An unknown name is an error: a
// typing slip must not silently mean the default.
func s3Settings(location *url.URL) (map[string]string, error) {
	if location.Host == "" || strings.Trim(location.Path, "/") != "" {
		return nil, errors.New("bucket URL: S3 is written s3://BUCKET?region=REGION")
	}
	query, err := url.ParseQuery(location.RawQuery)
	if err != nil {
		return nil, errors.New("bucket URL: the part after ? is malformed")
	}
	settings := map[string]string{
		"endpoint": "", "region": "us-east-1", "prefix": "", "credentials": "",
	}
	for name, values := range query {
		if _, known := settings[name]; !known {
			return nil, fmt.Errorf(
				"bucket URL: unknown setting %q, known are endpoint, region, prefix, credentials", name)
		}
		settings[name] = values[0]
	}
	if settings["endpoint"] == "" {
		settings["endpoint"] = "https://s3." + settings["region"] + ".amazonaws.com"
	}
	if prefix := strings.Trim(settings["prefix"], "/"); prefix != "" {
		settings["prefix"] = prefix + "/"
	}
	return settings, nil
}

// s3Credentials picks the source of the keys. The machine's role is only used on request, because
// elsewhere asking for it hangs instead of failing.
func s3Credentials(user *url.Userinfo, source string) (*credentials.Credentials, error) {
	secret, _ := user.Password()
	switch {
	case source == "iam":
		return credentials.NewIAM(""), nil
	case source != "":
		return nil, fmt.Errorf("bucket URL: credentials=%s is not known, use iam or leave it out", source)
	case user.Username() != "" && secret != "":
		return credentials.NewStaticV4(user.Username(), secret, ""), nil
	case user != nil:
		return nil, errors.New("bucket URL: credentials are written s3://KEY:SECRET@BUCKET")
	}
	fromEnvironment := credentials.NewEnvAWS()
	keys, err := fromEnvironment.GetWithContext(nil)
	if err != nil || keys.AccessKeyID == "" || keys.SecretAccessKey == "" {
		return nil, errors.New("bucket URL: no S3 credentials: set AWS_ACCESS_KEY_ID and " +
			"AWS_SECRET_ACCESS_KEY, write s3://KEY:SECRET@BUCKET, or add credentials=iam")
	}
	return fromEnvironment, nil
}

// Put sends one request of known length, which S3 applies wholly or not at all. Its MD5 lets the
// storage refuse bytes that changed on the way, also over plain http, where the signature does not
// cover them.
func (b *s3Bucket) Put(ctx context.Context, key string, content *io.SectionReader) error {
	_, err := b.client.Client.PutObject(ctx, b.name, b.prefix+key, content, content.Size(),
		minio.PutObjectOptions{
			ContentType:          "application/octet-stream",
			DisableContentSha256: true,
			DisableMultipart:     true,
			SendContentMd5:       true,
		})
	if err == nil {
		return nil
	}
	if !errors.As(err, new(minio.ErrorResponse)) { // no answer: the request may still be running
		err = errors.Join(err, errMayCome)
	}
	return fmt.Errorf("storing %s: %w", key, err)
}

// Get streams the object.
func (b *s3Bucket) Get(ctx context.Context, key string) (io.ReadCloser, error) {
	body, _, _, err := b.client.GetObject(ctx, b.name, b.prefix+key, minio.GetObjectOptions{})
	if err == nil {
		return body, nil
	}
	if minio.ToErrorResponse(err).Code == minio.NoSuchKey {
		err = fs.ErrNotExist
	}
	return nil, fmt.Errorf("opening %s: %w", key, err)
}

// Delete removes the object.
func (b *s3Bucket) Delete(ctx context.Context, key string) error {
	err := b.client.RemoveObject(ctx, b.name, b.prefix+key, minio.RemoveObjectOptions{})
	if err != nil && minio.ToErrorResponse(err).Code != minio.NoSuchKey {
		return fmt.Errorf("deleting %s: %w", key, err)
	}
	return nil
}

// List pages through the keys under prefix.
func (b *s3Bucket) List(ctx context.Context, prefix string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		// The library fetches the next page ahead of us; leaving must stop it.
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		options := minio.ListObjectsOptions{Prefix: b.prefix + prefix, Recursive: true}
		for info := range b.client.ListObjectsIter(ctx, b.name, options) {
			if info.Err != nil {
				yield(Object{}, fmt.Errorf("listing %s: %w", prefix, info.Err))
				return
			}
			key := strings.TrimPrefix(info.Key, b.prefix)
			if !yield(Object{Key: key, ModTime: info.LastModified}, nil) {
				return
			}
		}
	}
}

// sectionOf wraps bytes in the reader that Put takes.
func sectionOf(content []byte) *io.SectionReader {
	return io.NewSectionReader(bytes.NewReader(content), 0, int64(len(content)))
}
