// Package webhook is transitional: it gives the packages below it the names that they
// had as one. Whoever names those packages directly needs nothing of it.
package webhook

import (
	"context"
	"reflect"
	"sync"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/secret"
	"drawbridge/internal/webhook/bulk"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/diagnose"
	"drawbridge/internal/webhook/health"
	"drawbridge/internal/webhook/sender"
	"drawbridge/internal/webhook/subscription"
)

// Service is all services in one.
type Service struct {
	DB              *postgres.DB
	Jobs            delivery.Inserter
	Keys            *secret.Keyring
	Policy          sender.Policy
	Sender          *sender.Sender
	Retries         delivery.Schedule
	SendTraceparent bool
	Observe         func(delivery.Observation)
	Calls           delivery.Gate

	once  sync.Once
	parts Parts
}

// Parts are the services by themselves.
type Parts struct {
	Subscriptions *subscription.Service
	Deliveries    *delivery.Service
	Health        *health.Service
	Bulk          *bulk.Service
	Diagnoses     *diagnose.Service
}

// Parts returns the services, which see what was changed in the fields of this one.
func (s *Service) Parts() *Parts {
	s.once.Do(func() {
		subscriptions := &subscription.Service{
			DB: s.DB, Keys: s.Keys, Policy: s.Policy, Sender: s.Sender,
		}
		deliveries := &delivery.Service{
			DB: s.DB, Jobs: s.Jobs, Subscriptions: subscriptions, Sender: s.Sender,
			Retries: s.Retries, SendTraceparent: s.SendTraceparent, Observe: s.Observe,
			Gate: &s.Calls,
		}
		s.parts = Parts{
			Subscriptions: subscriptions, Deliveries: deliveries,
			Health:    &health.Service{DB: s.DB, Sender: s.Sender, Gate: &s.Calls},
			Bulk:      &bulk.Service{DB: s.DB, Jobs: s.Jobs},
			Diagnoses: &diagnose.Service{Subscriptions: subscriptions, Deliveries: deliveries},
		}
	})
	if s.parts.Subscriptions.Keys != s.Keys {
		s.parts.Subscriptions.Keys = s.Keys
	}
	if !reflect.DeepEqual(s.parts.Subscriptions.Policy, s.Policy) {
		s.parts.Subscriptions.Policy = s.Policy
	}
	if !reflect.DeepEqual(s.parts.Deliveries.Retries, s.Retries) {
		s.parts.Deliveries.Retries = s.Retries
	}
	if s.parts.Deliveries.Sender != s.Sender {
		s.parts.Subscriptions.Sender, s.parts.Deliveries.Sender = s.Sender, s.Sender
		s.parts.Health.Sender = s.Sender
	}
	return &s.parts
}

type (
	Attempt             = sender.Attempt
	AttemptRecord       = delivery.Attempt
	Auth                = sender.Auth
	Backlog             = health.Backlog
	BlockedError        = sender.BlockedError
	Bulk                = bulk.Resend
	BulkArgs            = bulk.Args
	BulkConsent         = bulk.Consent
	BulkCounts          = bulk.Counts
	BulkItem            = bulk.Item
	BulkItemFilter      = bulk.ItemFilter
	BulkKind            = bulk.Kind
	BulkLane            = bulk.Lane
	BulkOptions         = bulk.Options
	BulkPlan            = bulk.Plan
	BulkRisks           = bulk.Risks
	BulkScope           = bulk.Scope
	BulkState           = bulk.State
	BulksFilter         = bulk.Filter
	Calls               = delivery.Gate
	CheckStep           = subscription.CheckStep
	CheckVerdict        = subscription.CheckVerdict
	Choice              = subscription.Choice
	Counts              = health.Counts
	DeliverArgs         = delivery.Args
	Delivery            = delivery.Delivery
	DeliveryDetail      = delivery.Detail
	DeliveryFilter      = delivery.Filter
	DeliveryPage        = delivery.Page
	DeliveryState       = delivery.State
	Diagnosis           = diagnose.Diagnosis
	ErrorClass          = sender.ErrorClass
	ErrorGroup          = health.ErrorGroup
	Event               = delivery.Event
	EventDetail         = delivery.EventDetail
	EventFilter         = delivery.EventFilter
	EventPage           = delivery.EventPage
	EventRecord         = delivery.EventRecord
	Examination         = diagnose.Examination
	Failure             = health.Failure
	FanOut              = delivery.FanOut
	Header              = sender.Header
	Health              = health.Health
	HealthHour          = health.Hour
	HealthSettings      = health.Settings
	Histogram           = health.Histogram
	Inserter            = delivery.Inserter
	Interest            = subscription.Interest
	ItemState           = bulk.ItemState
	LedgerLine          = delivery.LedgerLine
	NeverSucceeded      = health.NeverSucceeded
	Observation         = delivery.Observation
	Overdue             = health.Overdue
	Owner               = diagnose.Owner
	PartnerChoice       = bulk.PartnerChoice
	PartnerShare        = bulk.PartnerShare
	Patch               = subscription.Patch
	PlanLane            = bulk.PlanLane
	Policy              = sender.Policy
	Probe               = sender.Probe
	ProbeChange         = health.ProbeChange
	ProbeRecord         = health.ProbeRecord
	Request             = sender.Request
	Resolver            = sender.Resolver
	Restoration         = subscription.Restoration
	Run                 = delivery.Run
	Schedule            = delivery.Schedule
	SecretMatch         = subscription.SecretMatch
	Sender              = sender.Sender
	SenderConfig        = sender.Config
	Setting             = subscription.Setting
	SettingChange       = subscription.SettingChange
	Settings            = subscription.Settings
	SignatureCase       = diagnose.SignatureCase
	SignatureFinding    = diagnose.SignatureFinding
	SignatureVerdict    = diagnose.SignatureVerdict
	SkipReason          = bulk.SkipReason
	StaleError          = subscription.StaleError
	State               = subscription.State
	StateChange         = health.StateChange
	Subscription        = subscription.Subscription
	SubscriptionFilter  = subscription.Filter
	SubscriptionSummary = subscription.Summary
	SummaryFilter       = subscription.SummaryFilter
	Tallied             = health.Tallied
	Timings             = sender.Timings
	TrafficStep         = health.TrafficStep
	Trial               = subscription.Trial
	TrialResult         = subscription.TrialResult
	Trouble             = health.Trouble
	URLCheck            = subscription.URLCheck
	Verdict             = delivery.Verdict
	Version             = subscription.Version
	VersionDiff         = subscription.VersionDiff
	Watch               = subscription.Watch
)

const (
	AllEvents         = subscription.AllEvents
	AuthBearer        = sender.AuthBearer
	AuthHMAC          = sender.AuthHMAC
	AuthNone          = sender.AuthNone
	BulkCancelled     = bulk.StateCancelled
	BulkDraft         = bulk.StateDraft
	BulkFilter        = bulk.KindFilter
	BulkFinished      = bulk.StateFinished
	BulkPaused        = bulk.StatePaused
	BulkQueue         = bulk.Queue
	BulkRecover       = bulk.KindRecover
	BulkReplay        = bulk.KindReplay
	BulkRunning       = bulk.StateRunning
	BulkSelection     = bulk.KindSelection
	CheckGood         = subscription.CheckGood
	CheckRefused      = subscription.CheckRefused
	CheckSkipped      = subscription.CheckSkipped
	CheckWarning      = subscription.CheckWarning
	ClassBlocked      = sender.ClassBlocked
	ClassConnect      = sender.ClassConnect
	ClassDNS          = sender.ClassDNS
	ClassHTTP3xx      = sender.ClassHTTP3xx
	ClassHTTP4xx      = sender.ClassHTTP4xx
	ClassHTTP5xx      = sender.ClassHTTP5xx
	ClassProtocol     = sender.ClassProtocol
	ClassTLS          = sender.ClassTLS
	ClassTimeout      = sender.ClassTimeout
	ClassUnknown      = sender.ClassUnknown
	DefaultOverlap    = subscription.DefaultOverlap
	DefaultPace       = bulk.DefaultPace
	DefaultTimeout    = sender.DefaultTimeout
	DeliveryCancelled = delivery.StateCancelled
	DeliveryDelivered = delivery.StateDelivered
	DeliveryFailed    = delivery.StateFailed
	DeliveryPending   = delivery.StatePending
	DeliveryRetrying  = delivery.StateRetrying
	FoundChangedBody  = diagnose.FoundChangedBody
	FoundEncoding     = diagnose.FoundEncoding
	FoundMalformed    = diagnose.FoundMalformed
	FoundNewline      = diagnose.FoundNewline
	FoundOtherSecret  = diagnose.FoundOtherSecret
	FoundPrevious     = diagnose.FoundPrevious
	FoundReserialised = diagnose.FoundReserialised
	FoundValid        = diagnose.FoundValid
	HoursKept         = health.HoursKept
	ItemCancelled     = bulk.ItemCancelled
	ItemDelivered     = bulk.ItemDelivered
	ItemFailed        = bulk.ItemFailed
	ItemSent          = bulk.ItemSent
	ItemSkipped       = bulk.ItemSkipped
	ItemWaiting       = bulk.ItemWaiting
	MaxAttempts       = delivery.MaxAttempts
	MaxBulk           = bulk.MaxItems
	MaxBulkChoice     = bulk.MaxChoice
	MaxPace           = bulk.MaxPace
	MaxRate           = subscription.MaxRate
	OwnerNetwork      = diagnose.OwnerNetwork
	OwnerPartner      = diagnose.OwnerPartner
	OwnerUs           = diagnose.OwnerUs
	Queue             = delivery.Queue
	SettingAuth       = subscription.SettingAuth
	SettingEvents     = subscription.SettingEvents
	SettingHeaders    = subscription.SettingHeaders
	SettingHealth     = subscription.SettingHealth
	SettingMerchants  = subscription.SettingMerchants
	SettingRate       = subscription.SettingRate
	SettingSecret     = subscription.SettingSecret
	SettingState      = subscription.SettingState
	SettingURL        = subscription.SettingURL
	SkipBodyGone      = bulk.SkipBodyGone
	SkipDeleted       = bulk.SkipDeleted
	SkipDelivered     = bulk.SkipDelivered
	SkipDuplicate     = bulk.SkipDuplicate
	SkipNewer         = bulk.SkipNewer
	SkipUnderWay      = bulk.SkipUnderWay
	SlowAfter         = delivery.SlowAfter
	StateActive       = subscription.StateActive
	StateDeleted      = subscription.StateDeleted
	StateFailing      = subscription.StateFailing
	StatePaused       = subscription.StatePaused
	System            = health.System
	TrafficKept       = health.TrafficKept
	TypedAbove        = bulk.TypedAbove
	VerdictDeleted    = delivery.VerdictDeleted
	VerdictEvent      = delivery.VerdictEvent
	VerdictLater      = delivery.VerdictLater
	VerdictMerchant   = delivery.VerdictMerchant
	VerdictSent       = delivery.VerdictSent
	VerdictUnrecorded = delivery.VerdictUnrecorded
	VerdictWaiting    = delivery.VerdictWaiting
	Workers           = delivery.Workers
	MaxPage           = postgres.MaxPage
)

// These functions stand for those of the packages below.
var (
	CertificateWarning = sender.CertificateWarning
	CheckHeaders       = sender.CheckHeaders
	Curl               = diagnose.Curl
	DeliveryStates     = delivery.States
	Diagnose           = diagnose.Attempt
	ErrNotSent         = delivery.ErrNotSent
	ErrorClasses       = sender.ErrorClasses
	ExamineSignature   = diagnose.Signature
	IsMasked           = sender.IsMasked
	ItemStates         = bulk.ItemStates
	Mask               = sender.Mask
	NewSender          = sender.New
	ParseHeader        = sender.ParseHeader
	SameOrigin         = subscription.SameOrigin
	Sign               = sender.Sign
	SignatureVectors   = sender.SignatureVectors
	Verdicts           = delivery.Verdicts
)

// AdoptHeld is that of delivery.
func (s *Service) AdoptHeld(
	p0 context.Context,
) (int, error) {
	return s.Parts().Deliveries.AdoptHeld(p0)
}

// AdvanceBulk is that of bulk.
func (s *Service) AdvanceBulk(
	p0 context.Context,
	p1 bulk.Args,
) (time.Duration, error) {
	return s.Parts().Bulk.Advance(p0, p1)
}

// Amend is that of subscription.
func (s *Service) Amend(
	p0 context.Context,
	p1 *postgres.Tx,
	p2 uuid.UUID,
	p3 subscription.Patch,
	p4 string,
) (subscription.Subscription, secret.String, error) {
	return s.Parts().Subscriptions.Amend(p0, p1, p2, p3, p4)
}

// AmendBulk is that of bulk.
func (s *Service) AmendBulk(
	p0 context.Context,
	p1 *postgres.Tx,
	p2 uuid.UUID,
	p3 bulk.Options,
) error {
	return s.Parts().Bulk.Amend(p0, p1, p2, p3)
}

// Backlog is that of health.
func (s *Service) Backlog(
	p0 context.Context,
) (health.Backlog, error) {
	return s.Parts().Health.Backlog(p0)
}

// Bulk is that of bulk.
func (s *Service) Bulk(
	p0 context.Context,
	p1 uuid.UUID,
) (bulk.Resend, error) {
	return s.Parts().Bulk.Get(p0, p1)
}

// BulkItems is that of bulk.
func (s *Service) BulkItems(
	p0 context.Context,
	p1 uuid.UUID,
	p2 bulk.ItemFilter,
) ([]bulk.Item, int, error) {
	return s.Parts().Bulk.Items(p0, p1, p2)
}

// BulkLanes is that of bulk.
func (s *Service) BulkLanes(
	p0 context.Context,
	p1 uuid.UUID,
) ([]bulk.Lane, error) {
	return s.Parts().Bulk.Lanes(p0, p1)
}

// BulkOfDelivery is that of bulk.
func (s *Service) BulkOfDelivery(
	p0 context.Context,
	p1 uuid.UUID,
) (uuid.UUID, error) {
	return s.Parts().Bulk.OfDelivery(p0, p1)
}

// Bulks is that of bulk.
func (s *Service) Bulks(
	p0 context.Context,
	p1 bulk.Filter,
) ([]bulk.Resend, postgres.Cursor, error) {
	return s.Parts().Bulk.List(p0, p1)
}

// Cancel is that of delivery.
func (s *Service) Cancel(
	p0 context.Context,
	p1 *postgres.Tx,
	p2 []uuid.UUID,
) ([]uuid.UUID, error) {
	return s.Parts().Deliveries.Cancel(p0, p1, p2)
}

// CancelBulk is that of bulk.
func (s *Service) CancelBulk(
	p0 context.Context,
	p1 *postgres.Tx,
	p2 uuid.UUID,
) (int, error) {
	return s.Parts().Bulk.Cancel(p0, p1, p2)
}

// CancelOpen is that of delivery.
func (s *Service) CancelOpen(
	p0 context.Context,
	p1 *postgres.Tx,
	p2 time.Time,
) (int, error) {
	return s.Parts().Deliveries.CancelOpen(p0, p1, p2)
}

// CheckDestination is that of subscription.
func (s *Service) CheckDestination(
	p0 context.Context,
	p1 string,
) (string, error) {
	return s.Parts().Subscriptions.CheckDestination(p0, p1)
}

// CheckURL is that of subscription.
func (s *Service) CheckURL(
	p0 context.Context,
	p1 string,
) subscription.URLCheck {
	return s.Parts().Subscriptions.CheckURL(p0, p1)
}

// CompareSecret is that of subscription.
func (s *Service) CompareSecret(
	p0 context.Context,
	p1 *postgres.Tx,
	p2 uuid.UUID,
	p3 secret.String,
) (subscription.SecretMatch, error) {
	return s.Parts().Subscriptions.CompareSecret(p0, p1, p2, p3)
}

// CompareVersions is that of subscription.
func (s *Service) CompareVersions(
	p0 context.Context,
	p1 uuid.UUID,
	p2 int,
	p3 int,
) (subscription.VersionDiff, error) {
	return s.Parts().Subscriptions.CompareVersions(p0, p1, p2, p3)
}

// ConfirmBulk is that of bulk.
func (s *Service) ConfirmBulk(
	p0 context.Context,
	p1 *postgres.Tx,
	p2 uuid.UUID,
	p3 bulk.Consent,
) (int, error) {
	return s.Parts().Bulk.Confirm(p0, p1, p2, p3)
}

// CountBulks is that of bulk.
func (s *Service) CountBulks(
	p0 context.Context,
	p1 bulk.Filter,
	p2 int,
) (int, error) {
	return s.Parts().Bulk.Count(p0, p1, p2)
}

// CountDeliveries is that of delivery.
func (s *Service) CountDeliveries(
	p0 context.Context,
	p1 delivery.Filter,
	p2 int,
) (int, error) {
	return s.Parts().Deliveries.Count(p0, p1, p2)
}

// CountEvents is that of delivery.
func (s *Service) CountEvents(
	p0 context.Context,
	p1 delivery.EventFilter,
	p2 int,
) (int, error) {
	return s.Parts().Deliveries.CountEvents(p0, p1, p2)
}

// CountNewer is that of delivery.
func (s *Service) CountNewer(
	p0 context.Context,
	p1 delivery.Filter,
	p2 int,
) (int, error) {
	return s.Parts().Deliveries.CountNewer(p0, p1, p2)
}

// CountOpen is that of delivery.
func (s *Service) CountOpen(
	p0 context.Context,
	p1 time.Time,
) (int, error) {
	return s.Parts().Deliveries.CountOpen(p0, p1)
}

// CountSummaries is that of subscription.
func (s *Service) CountSummaries(
	p0 context.Context,
	p1 subscription.SummaryFilter,
	p2 int,
) (int, error) {
	return s.Parts().Subscriptions.CountSummaries(p0, p1, p2)
}

// Delete is that of subscription.
func (s *Service) Delete(
	p0 context.Context,
	p1 *postgres.Tx,
	p2 uuid.UUID,
	p3 string,
) (subscription.Subscription, error) {
	return s.Parts().Subscriptions.Delete(p0, p1, p2, p3)
}

// Deliver is that of delivery.
func (s *Service) Deliver(
	p0 context.Context,
	p1 delivery.Args,
	p2 delivery.Run,
) error {
	return s.Parts().Deliveries.Deliver(p0, p1, p2)
}

// Deliveries is that of delivery.
func (s *Service) Deliveries(
	p0 context.Context,
	p1 delivery.Filter,
) (delivery.Page, error) {
	return s.Parts().Deliveries.List(p0, p1)
}

// DeliveriesByUID is that of delivery.
func (s *Service) DeliveriesByUID(
	p0 context.Context,
	p1 []uuid.UUID,
) ([]delivery.Delivery, error) {
	return s.Parts().Deliveries.ByUIDs(p0, p1)
}

// Delivery is that of delivery.
func (s *Service) Delivery(
	p0 context.Context,
	p1 uuid.UUID,
) (delivery.Detail, error) {
	return s.Parts().Deliveries.Get(p0, p1)
}

// DescribeFailure is that of health.
func (s *Service) DescribeFailure(
	p0 context.Context,
	p1 *postgres.Tx,
	p2 uuid.UUID,
) (health.Failure, error) {
	return s.Parts().Health.DescribeFailure(p0, p1, p2)
}

// DraftBulk is that of bulk.
func (s *Service) DraftBulk(
	p0 context.Context,
	p1 *postgres.Tx,
	p2 bulk.Scope,
	p3 bulk.Options,
	p4 string,
) (uuid.UUID, error) {
	return s.Parts().Bulk.Draft(p0, p1, p2, p3, p4)
}

// EventByUID is that of delivery.
func (s *Service) EventByUID(
	p0 context.Context,
	p1 uuid.UUID,
) (delivery.EventDetail, error) {
	return s.Parts().Deliveries.EventByUID(p0, p1)
}

// EventVerdicts is that of delivery.
func (s *Service) EventVerdicts(
	p0 context.Context,
	p1 uuid.UUID,
) ([]delivery.LedgerLine, error) {
	return s.Parts().Deliveries.EventVerdicts(p0, p1)
}

// Events is that of delivery.
func (s *Service) Events(
	p0 context.Context,
	p1 delivery.EventFilter,
) (delivery.EventPage, error) {
	return s.Parts().Deliveries.Events(p0, p1)
}

// Examine is that of diagnose.
func (s *Service) Examine(
	p0 context.Context,
	p1 diagnose.Examination,
) (diagnose.SignatureVerdict, error) {
	return s.Parts().Diagnoses.Examine(p0, p1)
}

// ForgetBegun is that of delivery.
func (s *Service) ForgetBegun(
	p0 context.Context,
) (int64, error) {
	return s.Parts().Deliveries.ForgetBegun(p0)
}

// Health is that of health.
func (s *Service) Health(
	p0 context.Context,
	p1 []uuid.UUID,
	p2 time.Time,
	p3 time.Time,
) (map[uuid.UUID]health.Health, error) {
	return s.Parts().Health.Read(p0, p1, p2, p3)
}

// HealthCandidates is that of health.
func (s *Service) HealthCandidates(
	p0 context.Context,
) ([]uuid.UUID, error) {
	return s.Parts().Health.Candidates(p0)
}

// Interests is that of subscription.
func (s *Service) Interests(
	p0 context.Context,
	p1 uuid.UUID,
	p2 uuid.UUID,
) (map[lending.EventKind]subscription.Interest, error) {
	return s.Parts().Subscriptions.Interests(p0, p1, p2)
}

// Judge is that of health.
func (s *Service) Judge(
	p0 context.Context,
	p1 *postgres.Tx,
	p2 uuid.UUID,
) (health.StateChange, bool, error) {
	return s.Parts().Health.Judge(p0, p1, p2)
}

// LastProbe is that of health.
func (s *Service) LastProbe(
	p0 context.Context,
	p1 uuid.UUID,
) (health.ProbeRecord, []health.ProbeChange, error) {
	return s.Parts().Health.LastProbe(p0, p1)
}

// LoadHealthSettings is that of health.
func (s *Service) LoadHealthSettings(
	p0 context.Context,
) (health.Settings, error) {
	return s.Parts().Health.LoadSettings(p0)
}

// MarkOrphans is that of delivery.
func (s *Service) MarkOrphans(
	p0 context.Context,
	p1 time.Duration,
) (int64, error) {
	return s.Parts().Deliveries.MarkOrphans(p0, p1)
}

// Neighbours is that of delivery.
func (s *Service) Neighbours(
	p0 context.Context,
	p1 delivery.Filter,
	p2 delivery.Delivery,
) (uuid.UUID, uuid.UUID, error) {
	return s.Parts().Deliveries.Neighbours(p0, p1, p2)
}

// NeverSucceeded is that of health.
func (s *Service) NeverSucceeded(
	p0 context.Context,
) ([]health.NeverSucceeded, error) {
	return s.Parts().Health.NeverSucceeded(p0)
}

// NewerDelivered is that of delivery.
func (s *Service) NewerDelivered(
	p0 context.Context,
	p1 delivery.Delivery,
) (bool, error) {
	return s.Parts().Deliveries.NewerDelivered(p0, p1)
}

// Overdue is that of health.
func (s *Service) Overdue(
	p0 context.Context,
	p1 time.Duration,
) (health.Overdue, error) {
	return s.Parts().Health.Overdue(p0, p1)
}

// OwnersOf is that of bulk.
func (s *Service) OwnersOf(
	p0 context.Context,
	p1 []uuid.UUID,
) ([]bulk.PartnerChoice, error) {
	return s.Parts().Bulk.OwnersOf(p0, p1)
}

// PartnersOf is that of bulk.
func (s *Service) PartnersOf(
	p0 context.Context,
	p1 delivery.Filter,
) ([]bulk.PartnerShare, error) {
	return s.Parts().Bulk.PartnersOf(p0, p1)
}

// Pause is that of subscription.
func (s *Service) Pause(
	p0 context.Context,
	p1 *postgres.Tx,
	p2 uuid.UUID,
	p3 string,
) (subscription.Subscription, error) {
	return s.Parts().Subscriptions.Pause(p0, p1, p2, p3)
}

// PauseBulk is that of bulk.
func (s *Service) PauseBulk(
	p0 context.Context,
	p1 *postgres.Tx,
	p2 uuid.UUID,
) error {
	return s.Parts().Bulk.Pause(p0, p1, p2)
}

// PlanBulk is that of bulk.
func (s *Service) PlanBulk(
	p0 context.Context,
	p1 uuid.UUID,
) (bulk.Plan, error) {
	return s.Parts().Bulk.Plan(p0, p1)
}

// ProbeDue is that of health.
func (s *Service) ProbeDue(
	p0 context.Context,
) ([]health.ProbeRecord, error) {
	return s.Parts().Health.ProbeDue(p0)
}

// ProbeNow is that of health.
func (s *Service) ProbeNow(
	p0 context.Context,
	p1 uuid.UUID,
) (health.ProbeRecord, error) {
	return s.Parts().Health.ProbeNow(p0, p1)
}

// Promote is that of delivery.
func (s *Service) Promote(
	p0 context.Context,
) (int, error) {
	return s.Parts().Deliveries.EnqueueDue(p0)
}

// PruneHealth is that of health.
func (s *Service) PruneHealth(
	p0 context.Context,
) error {
	return s.Parts().Health.PruneHealth(p0)
}

// Publish is that of delivery.
func (s *Service) Publish(
	p0 context.Context,
	p1 *postgres.Tx,
	p2 delivery.Event,
) (int, error) {
	return s.Parts().Deliveries.Publish(p0, p1, p2)
}

// ReleaseIdle is that of delivery.
func (s *Service) ReleaseIdle(
	p0 context.Context,
) error {
	return s.Parts().Deliveries.ReleaseIdle(p0)
}

// Reopen is that of subscription.
func (s *Service) Reopen(
	p0 context.Context,
	p1 *postgres.Tx,
	p2 uuid.UUID,
) (subscription.Subscription, error) {
	return s.Parts().Subscriptions.Reopen(p0, p1, p2)
}

// ReplayTargets is that of bulk.
func (s *Service) ReplayTargets(
	p0 context.Context,
	p1 uuid.UUID,
) ([]uuid.UUID, error) {
	return s.Parts().Bulk.ReplayTargets(p0, p1)
}

// Resend is that of delivery.
func (s *Service) Resend(
	p0 context.Context,
	p1 *postgres.Tx,
	p2 []uuid.UUID,
	p3 string,
	p4 string,
) ([]uuid.UUID, error) {
	return s.Parts().Deliveries.Resend(p0, p1, p2, p3, p4)
}

// ResendMatching is that of delivery.
func (s *Service) ResendMatching(
	p0 context.Context,
	p1 *postgres.Tx,
	p2 delivery.Filter,
	p3 string,
	p4 string,
) ([]uuid.UUID, error) {
	return s.Parts().Deliveries.ResendMatching(p0, p1, p2, p3, p4)
}

// ResendsOf is that of delivery.
func (s *Service) ResendsOf(
	p0 context.Context,
	p1 uuid.UUID,
) ([]delivery.Delivery, error) {
	return s.Parts().Deliveries.ResendsOf(p0, p1)
}

// Restore is that of subscription.
func (s *Service) Restore(
	p0 context.Context,
	p1 *postgres.Tx,
	p2 uuid.UUID,
	p3 subscription.Choice,
	p4 string,
) (subscription.Restoration, error) {
	return s.Parts().Subscriptions.Restore(p0, p1, p2, p3, p4)
}

// Resume is that of subscription.
func (s *Service) Resume(
	p0 context.Context,
	p1 *postgres.Tx,
	p2 uuid.UUID,
	p3 string,
) (subscription.Subscription, error) {
	return s.Parts().Subscriptions.Resume(p0, p1, p2, p3)
}

// ResumeBulk is that of bulk.
func (s *Service) ResumeBulk(
	p0 context.Context,
	p1 *postgres.Tx,
	p2 uuid.UUID,
) error {
	return s.Parts().Bulk.Resume(p0, p1, p2)
}

// ReviveBulks is that of bulk.
func (s *Service) ReviveBulks(
	p0 context.Context,
) (int, error) {
	return s.Parts().Bulk.Revive(p0)
}

// SaveHealthSettings is that of health.
func (s *Service) SaveHealthSettings(
	p0 context.Context,
	p1 *postgres.Tx,
	p2 health.Settings,
	p3 string,
) (health.Settings, error) {
	return s.Parts().Health.SaveSettings(p0, p1, p2, p3)
}

// StillUnknown is that of health.
func (s *Service) StillUnknown(
	p0 context.Context,
	p1 uuid.UUID,
	p2 time.Time,
) (bool, error) {
	return s.Parts().Health.StillUnknown(p0, p1, p2)
}

// StillUsedUp is that of health.
func (s *Service) StillUsedUp(
	p0 context.Context,
	p1 uuid.UUID,
	p2 time.Time,
) (bool, error) {
	return s.Parts().Health.StillUsedUp(p0, p1, p2)
}

// Stopped is that of subscription.
func (s *Service) Stopped(
	p0 context.Context,
) ([]uuid.UUID, error) {
	return s.Parts().Subscriptions.Stopped(p0)
}

// Subscribe is that of subscription.
func (s *Service) Subscribe(
	p0 context.Context,
	p1 *postgres.Tx,
	p2 uuid.UUID,
	p3 subscription.Settings,
	p4 string,
) (subscription.Subscription, secret.String, error) {
	return s.Parts().Subscriptions.Subscribe(p0, p1, p2, p3, p4)
}

// Subscription is that of subscription.
func (s *Service) Subscription(
	p0 context.Context,
	p1 uuid.UUID,
) (subscription.Subscription, error) {
	return s.Parts().Subscriptions.Get(p0, p1)
}

// SubscriptionSummaries is that of subscription.
func (s *Service) SubscriptionSummaries(
	p0 context.Context,
	p1 subscription.SummaryFilter,
) ([]subscription.Summary, postgres.Cursor, error) {
	return s.Parts().Subscriptions.Summaries(p0, p1)
}

// Subscriptions is that of subscription.
func (s *Service) Subscriptions(
	p0 context.Context,
	p1 subscription.Filter,
) ([]subscription.Subscription, postgres.Cursor, error) {
	return s.Parts().Subscriptions.List(p0, p1)
}

// Tally is that of health.
func (s *Service) Tally(
	p0 context.Context,
	p1 *postgres.Tx,
) (health.Tallied, error) {
	return s.Parts().Health.Tally(p0, p1)
}

// Test is that of delivery.
func (s *Service) Test(
	p0 context.Context,
	p1 *postgres.Tx,
	p2 uuid.UUID,
	p3 lending.EventKind,
) (uuid.UUID, error) {
	return s.Parts().Deliveries.Test(p0, p1, p2, p3)
}

// Traffic is that of health.
func (s *Service) Traffic(
	p0 context.Context,
	p1 time.Time,
	p2 time.Time,
	p3 time.Duration,
) ([]health.TrafficStep, error) {
	return s.Parts().Health.Traffic(p0, p1, p2, p3)
}

// Try is that of subscription.
func (s *Service) Try(
	p0 context.Context,
	p1 subscription.Trial,
) (subscription.TrialResult, error) {
	return s.Parts().Subscriptions.Try(p0, p1)
}

// Versions is that of subscription.
func (s *Service) Versions(
	p0 context.Context,
	p1 uuid.UUID,
) ([]subscription.Version, error) {
	return s.Parts().Subscriptions.Versions(p0, p1)
}
