package invocation

import (
	"context"
	"errors"
	"strconv"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/headgate-io/headgate/invocation/nvcfpb"
	"github.com/headgate-io/headgate/ratelimit"
)

// nvcfNames are the fields of a request on the NVCF wire, which has no cost.
var nvcfNames = names{
	account: "ncaId", function: "functionId", version: "functionVersionId", subject: "clientAuthSubject",
}

// Trailing metadata of a DISALLOW reply; clients of the NVCF wire do not look
// at it, others may.
const (
	trailerRetryAfter = "retry-after" // whole seconds, at least 1; absent when waiting will not help
	trailerTier       = "headgate-tier"
	trailerRate       = "headgate-rate"
)

// nvcfService speaks the NVCF wire.
type nvcfService struct {
	nvcfpb.UnimplementedRateLimitServiceServer
	gate *Gate
}

// RateLimit decides one invocation of cost 1. That it is limited, or decided
// without the store, is an answer; errors are for what got none, since clients
// of this wire take every error for "allowed".
func (s *nvcfService) RateLimit(
	ctx context.Context, req *nvcfpb.RateLimitRequest,
) (*nvcfpb.RateLimitResponse, error) {
	inv := ratelimit.Invocation{
		Account:  req.GetNcaId(),
		Function: req.GetFunctionId(),
		Version:  req.GetFunctionVersionId(),
		Subject:  req.GetClientAuthSubject(),
		Cost:     1,
	}
	if err := requireNVCF(inv); err != nil && s.gate.Ready() {
		s.gate.metrics.invalid.Inc()
		return nil, statusOf(err, nvcfNames)
	}
	d, err := s.gate.Decide(ctx, inv)
	if err != nil {
		return nil, statusOf(err, nvcfNames)
	}
	if d.Allowed() {
		return &nvcfpb.RateLimitResponse{Result: nvcfpb.Result_ALLOW}, nil
	}
	// Fails only outside of a call.
	_ = grpc.SetTrailer(ctx, denialTrailer(d))
	return &nvcfpb.RateLimitResponse{Result: nvcfpb.Result_DISALLOW}, nil
}

// requireNVCF refuses a request without one of the fields that this wire has
// always required, whatever the policy counts by.
func requireNVCF(inv ratelimit.Invocation) error {
	switch "" {
	case inv.Account:
		return required(plainNames.account)
	case inv.Function:
		return required(plainNames.function)
	case inv.Version:
		return required(plainNames.version)
	default:
		return nil
	}
}

func denialTrailer(d ratelimit.Decision) metadata.MD {
	md := metadata.MD{trailerTier: {d.Tier.String()}, trailerRate: {d.Rate.String()}}
	if d.Outcome == ratelimit.Denied {
		md[trailerRetryAfter] = []string{strconv.FormatInt(max(1, wholeSeconds(d.RetryAfter)), 10)}
	}
	return md
}

// statusOf translates what [Gate.Decide] returned, with fields named by n. No
// error of another package is repeated: it might speak of the request.
func statusOf(err error, n names) error {
	var field *ratelimit.FieldError
	switch {
	case errors.As(err, &field):
		return invalidArgument(n.rename(field))
	case errors.Is(err, ErrNotReady):
		return status.Error(codes.Unavailable, "this node is not ready yet")
	case errors.Is(err, ErrClosed), errors.Is(err, ratelimit.ErrStopped):
		return status.Error(codes.Unavailable, "this node is leaving")
	case errors.Is(err, context.DeadlineExceeded):
		return status.Error(codes.DeadlineExceeded, "no decision in time")
	case errors.Is(err, context.Canceled):
		return status.Error(codes.Canceled, "the caller gave up")
	default:
		return status.Error(codes.Internal, "internal error")
	}
}

// invalidArgument names the field in the message for people and in a detail for
// programs.
func invalidArgument(e *ratelimit.FieldError) error {
	st := status.New(codes.InvalidArgument, e.Error())
	detailed, err := st.WithDetails(&errdetails.BadRequest{
		FieldViolations: []*errdetails.BadRequest_FieldViolation{{Field: e.Field, Description: e.Reason}},
	})
	if err != nil {
		return st.Err() // the message alone says the same
	}
	return detailed.Err()
}

// recoverUnary answers a call whose handler panicked with INTERNAL.
func (g *Gate) recoverUnary(
	ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler,
) (resp any, err error) {
	defer func() {
		if value := recover(); value != nil {
			g.panicked(info.FullMethod, value)
			resp, err = nil, status.Error(codes.Internal, "internal error")
		}
	}()
	return next(ctx, req)
}

// recoverStream is recoverUnary for streams.
func (g *Gate) recoverStream(
	srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler,
) (err error) {
	defer func() {
		if value := recover(); value != nil {
			g.panicked(info.FullMethod, value)
			err = status.Error(codes.Internal, "internal error")
		}
	}()
	return next(srv, stream)
}
