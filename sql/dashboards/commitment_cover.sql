-- By month: what commitments cost on the bills, what of it was not used, and how much of the GPU time that could be bought on
-- demand was covered, at on-demand prices.
select bill_month, cast(sum(used + unused) as decimal(18, 2)) as committed, cast(sum(used) as decimal(18, 2)) as used,
  cast(sum(unused) as decimal(18, 2)) as unused,
  case when sum(used + unused) > 0 then cast(sum(used) as double) / cast(sum(used + unused) as double) end as used_ratio,
  case when sum(on_demand) > 0
    then cast(sum(case when commitment_id <> '' then on_demand else 0 end) as double) / cast(sum(on_demand) as double) end as cover_ratio,
  cast(sum(case when commitment_id <> '' then on_demand - used - unused end) as decimal(18, 2)) as saved
from marts.commitment_monthly
where provider in (select provider from marts.commitment_monthly where used is not null)
group by bill_month
order by bill_month desc
