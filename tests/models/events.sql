CREATE TABLE events.run_recorded (
  cluster VARCHAR NOT NULL,
  run_id VARCHAR NOT NULL,
  started_at TIMESTAMPTZ NOT NULL,
  display_id VARCHAR,
  run_name VARCHAR,
  account VARCHAR,
  user_name VARCHAR,
  partition VARCHAR,
  qos VARCHAR,
  submitted_at TIMESTAMPTZ,
  ended_at TIMESTAMPTZ,
  state VARCHAR NOT NULL,
  is_final BOOLEAN NOT NULL,
  is_from_step BOOLEAN NOT NULL,
  exit_code VARCHAR,
  placement_id VARCHAR,
  batch_id BIGINT NOT NULL,
  version_at TIMESTAMPTZ NOT NULL
);

CREATE TABLE events.run_placed (
  placement_id VARCHAR NOT NULL,
  node VARCHAR NOT NULL,
  gpu_type VARCHAR NOT NULL,
  gpu_model VARCHAR,
  mig_profile VARCHAR,
  device_count BIGINT NOT NULL,
  device_shares BIGINT,
  batch_id BIGINT NOT NULL,
  version_at TIMESTAMPTZ NOT NULL
);

CREATE TABLE events.gpu_inventoried (
  cluster VARCHAR NOT NULL,
  node VARCHAR NOT NULL,
  gpu_model VARCHAR NOT NULL,
  mig_layout VARCHAR NOT NULL,
  mig_profile VARCHAR NOT NULL,
  effective_from_at TIMESTAMPTZ NOT NULL,
  effective_until_at TIMESTAMPTZ,
  card_count BIGINT NOT NULL,
  slices_per_card_count BIGINT NOT NULL,
  resource_id VARCHAR,
  capacity_type VARCHAR,
  batch_id BIGINT NOT NULL,
  version_at TIMESTAMPTZ NOT NULL
);

CREATE TABLE events.node_state_changed (
  cluster VARCHAR NOT NULL,
  node VARCHAR NOT NULL,
  changed_at TIMESTAMPTZ NOT NULL,
  state VARCHAR NOT NULL,
  reason VARCHAR,
  batch_id BIGINT NOT NULL,
  version_at TIMESTAMPTZ NOT NULL
);

CREATE TABLE events.gpu_sampled (
  cluster VARCHAR NOT NULL,
  gpu_uuid VARCHAR NOT NULL,
  mig_instance VARCHAR NOT NULL,
  sampled_at TIMESTAMPTZ NOT NULL,
  node VARCHAR NOT NULL,
  gpu_index VARCHAR,
  gpu_model VARCHAR,
  mig_profile VARCHAR,
  interval_seconds BIGINT NOT NULL,
  gpu_util_ratio DOUBLE,
  sm_active_ratio DOUBLE,
  gr_engine_active_ratio DOUBLE,
  tensor_active_ratio DOUBLE,
  framebuffer_used_mib DOUBLE,
  board_power_watts DOUBLE,
  board_energy_joules DOUBLE,
  holder VARCHAR,
  batch_id BIGINT NOT NULL,
  version_at TIMESTAMPTZ NOT NULL
);

CREATE TABLE events.bill_delivered (
  issuer VARCHAR NOT NULL,
  billing_account_id VARCHAR NOT NULL,
  billing_period_month DATE NOT NULL,
  content_id VARCHAR NOT NULL,
  line_count BIGINT NOT NULL,
  billed_amount DECIMAL(38,12),
  effective_amount DECIMAL(38,12),
  currency VARCHAR,
  focus_version VARCHAR,
  batch_id BIGINT NOT NULL,
  version_at TIMESTAMPTZ NOT NULL
);

CREATE TABLE events.charge_billed (
  content_id VARCHAR NOT NULL,
  line_digest VARCHAR NOT NULL,
  line_ordinal BIGINT NOT NULL,
  issuer VARCHAR NOT NULL,
  billing_account_id VARCHAR NOT NULL,
  billing_period_month DATE NOT NULL,
  invoice_id VARCHAR,
  provider VARCHAR,
  sub_account_id VARCHAR,
  charge_category VARCHAR NOT NULL,
  charge_class VARCHAR,
  charge_description VARCHAR,
  charge_period_start_at TIMESTAMPTZ NOT NULL,
  charge_period_end_at TIMESTAMPTZ NOT NULL,
  service_category VARCHAR,
  service_name VARCHAR,
  sku_id VARCHAR,
  region_id VARCHAR,
  resource_id VARCHAR,
  resource_name VARCHAR,
  pricing_category VARCHAR,
  pricing_quantity DECIMAL(38,12),
  pricing_unit VARCHAR,
  consumed_quantity DECIMAL(38,12),
  commitment_discount_id VARCHAR,
  commitment_discount_status VARCHAR,
  billed_amount DECIMAL(38,12) NOT NULL,
  effective_amount DECIMAL(38,12) NOT NULL,
  list_amount DECIMAL(38,12),
  contracted_amount DECIMAL(38,12),
  currency VARCHAR NOT NULL,
  tags VARCHAR,
  batch_id BIGINT NOT NULL,
  version_at TIMESTAMPTZ NOT NULL
);

CREATE TABLE events.asset_recorded (
  asset_id VARCHAR NOT NULL,
  cluster VARCHAR NOT NULL,
  node VARCHAR,
  in_service_at TIMESTAMPTZ NOT NULL,
  retired_at TIMESTAMPTZ,
  life_months_count BIGINT NOT NULL,
  purchase_amount DECIMAL(38,12) NOT NULL,
  residual_amount DECIMAL(38,12) NOT NULL,
  currency VARCHAR NOT NULL,
  power_watts DOUBLE,
  power_usage_effectiveness DECIMAL(38,12),
  energy_price_amount DECIMAL(38,12),
  monthly_fee_amount DECIMAL(38,12),
  batch_id BIGINT NOT NULL,
  version_at TIMESTAMPTZ NOT NULL
);

CREATE TABLE events.fx_rate_observed (
  currency VARCHAR NOT NULL,
  reporting_currency VARCHAR NOT NULL,
  observed_at TIMESTAMPTZ NOT NULL,
  fx_rate DECIMAL(18,9) NOT NULL,
  batch_id BIGINT NOT NULL,
  version_at TIMESTAMPTZ NOT NULL
);

CREATE TABLE events.ownership_assigned (
  cluster VARCHAR NOT NULL,
  account VARCHAR NOT NULL,
  effective_from_at TIMESTAMPTZ NOT NULL,
  project VARCHAR,
  team VARCHAR NOT NULL,
  business_unit VARCHAR NOT NULL,
  batch_id BIGINT NOT NULL,
  version_at TIMESTAMPTZ NOT NULL
);

CREATE TABLE events.policy_set (
  policy VARCHAR NOT NULL,
  subject VARCHAR NOT NULL,
  effective_from_at TIMESTAMPTZ NOT NULL,
  value VARCHAR NOT NULL,
  batch_id BIGINT NOT NULL,
  version_at TIMESTAMPTZ NOT NULL
);

CREATE TABLE events.period_closed (
  period_month DATE NOT NULL,
  closed_at TIMESTAMPTZ NOT NULL,
  log_batch_id BIGINT NOT NULL,
  billed_micros BIGINT NOT NULL,
  postings_digest VARCHAR NOT NULL,
  batch_id BIGINT NOT NULL,
  version_at TIMESTAMPTZ NOT NULL
);

CREATE TABLE events.posting_made (
  charge_month DATE NOT NULL,
  posted_month DATE NOT NULL,
  business_unit VARCHAR NOT NULL,
  team VARCHAR NOT NULL,
  project VARCHAR NOT NULL,
  cost_kind VARCHAR NOT NULL,
  usage_share_seconds BIGINT NOT NULL,
  cost_micros BIGINT NOT NULL,
  batch_id BIGINT NOT NULL,
  version_at TIMESTAMPTZ NOT NULL
);

CREATE TABLE events.price_observed (
  offer_id VARCHAR NOT NULL,
  gpu_model VARCHAR NOT NULL,
  region VARCHAR NOT NULL,
  zone VARCHAR NOT NULL,
  observed_at TIMESTAMPTZ NOT NULL,
  instrument VARCHAR NOT NULL,
  provider VARCHAR NOT NULL,
  instance_type VARCHAR,
  operating_system VARCHAR,
  gpu_count BIGINT NOT NULL,
  scope VARCHAR NOT NULL,
  has_capacity BOOLEAN NOT NULL,
  term_seconds BIGINT,
  payment_option VARCHAR,
  upfront_amount DECIMAL(38,12),
  hourly_amount DECIMAL(38,12),
  residual_amount DECIMAL(38,12),
  life_months_count BIGINT,
  power_watts DOUBLE,
  monthly_fee_amount DECIMAL(38,12),
  lead_seconds BIGINT,
  reference_gpu_quantity DECIMAL(38,12),
  currency VARCHAR NOT NULL,
  valid_from_at TIMESTAMPTZ,
  valid_until_at TIMESTAMPTZ,
  price_source VARCHAR NOT NULL,
  batch_id BIGINT NOT NULL,
  version_at TIMESTAMPTZ NOT NULL
);

CREATE TABLE events.commitment_recorded (
  commitment_id VARCHAR NOT NULL,
  instrument VARCHAR NOT NULL,
  provider VARCHAR NOT NULL,
  offer_id VARCHAR,
  region VARCHAR,
  zone VARCHAR,
  gpu_model VARCHAR,
  instance_type VARCHAR,
  scope VARCHAR NOT NULL,
  has_capacity BOOLEAN NOT NULL,
  starts_at TIMESTAMPTZ NOT NULL,
  ends_at TIMESTAMPTZ NOT NULL,
  gpu_count BIGINT,
  hourly_commitment_amount DECIMAL(38,12),
  hourly_amount DECIMAL(38,12),
  upfront_amount DECIMAL(38,12),
  payment_option VARCHAR,
  currency VARCHAR NOT NULL,
  state VARCHAR NOT NULL,
  batch_id BIGINT NOT NULL,
  version_at TIMESTAMPTZ NOT NULL
);

CREATE TABLE events.run_interrupted (
  cluster VARCHAR NOT NULL,
  run_id VARCHAR NOT NULL,
  started_at TIMESTAMPTZ NOT NULL,
  interrupted_at TIMESTAMPTZ NOT NULL,
  cause VARCHAR NOT NULL,
  node VARCHAR,
  gpu_count BIGINT,
  notice_seconds BIGINT,
  batch_id BIGINT NOT NULL,
  version_at TIMESTAMPTZ NOT NULL
);

CREATE TABLE events.checkpoint_saved (
  cluster VARCHAR NOT NULL,
  run_id VARCHAR NOT NULL,
  saved_at TIMESTAMPTZ NOT NULL,
  blocking_seconds BIGINT,
  size_mib DOUBLE,
  batch_id BIGINT NOT NULL,
  version_at TIMESTAMPTZ NOT NULL
);

CREATE TABLE events.plan_recommended (
  plan_id VARCHAR NOT NULL,
  made_at TIMESTAMPTZ NOT NULL,
  inputs_digest VARCHAR NOT NULL,
  log_batch_id BIGINT NOT NULL,
  policy_digest VARCHAR NOT NULL,
  horizon_start_at TIMESTAMPTZ NOT NULL,
  horizon_end_at TIMESTAMPTZ NOT NULL,
  seed BIGINT NOT NULL,
  scenario_count BIGINT NOT NULL,
  expected_cost_micros BIGINT NOT NULL,
  cvar_cost_micros BIGINT NOT NULL,
  objective_cost_micros BIGINT NOT NULL,
  bound_cost_micros BIGINT NOT NULL,
  repriced_cost_micros BIGINT,
  solved_by VARCHAR NOT NULL,
  prices_from_at TIMESTAMPTZ NOT NULL,
  prices_until_at TIMESTAMPTZ NOT NULL,
  batch_id BIGINT NOT NULL,
  version_at TIMESTAMPTZ NOT NULL
);

CREATE TABLE events.plan_saving_estimated (
  plan_id VARCHAR NOT NULL,
  baseline VARCHAR NOT NULL,
  baseline_cost_micros BIGINT,
  saving_micros BIGINT,
  low_micros BIGINT,
  high_micros BIGINT,
  batch_id BIGINT NOT NULL,
  version_at TIMESTAMPTZ NOT NULL
);

CREATE TABLE events.plan_line_recommended (
  plan_id VARCHAR NOT NULL,
  line BIGINT NOT NULL,
  line_kind VARCHAR NOT NULL,
  offer_id VARCHAR,
  pool VARCHAR,
  starts_at TIMESTAMPTZ NOT NULL,
  ends_at TIMESTAMPTZ NOT NULL,
  gpu_count BIGINT,
  hourly_commitment_micros BIGINT,
  gpu_hours_quantity DECIMAL(38,12),
  cost_micros BIGINT NOT NULL,
  upfront_micros BIGINT,
  committed_micros BIGINT,
  break_even_ratio DOUBLE,
  used_ratio DOUBLE,
  reason VARCHAR NOT NULL,
  batch_id BIGINT NOT NULL,
  version_at TIMESTAMPTZ NOT NULL
);

CREATE TABLE events.plan_noted (
  plan_id VARCHAR NOT NULL,
  note BIGINT NOT NULL,
  note_kind VARCHAR NOT NULL,
  setting VARCHAR,
  value VARCHAR,
  text VARCHAR NOT NULL,
  batch_id BIGINT NOT NULL,
  version_at TIMESTAMPTZ NOT NULL
);

CREATE TABLE events.plan_stress_estimated (
  plan_id VARCHAR NOT NULL,
  world VARCHAR NOT NULL,
  cost_micros BIGINT NOT NULL,
  without_micros BIGINT NOT NULL,
  batch_id BIGINT NOT NULL,
  version_at TIMESTAMPTZ NOT NULL
);

