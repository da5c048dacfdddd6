import type { NotRunReason } from '../../src/inventory/core/facts.ts';
import type { NotAcceptedCode } from '../../src/inventory/core/memory.ts';
import type { TriggerReason } from '../../src/inventory/core/triggers.ts';
import type { CallFailureCode } from '../../src/inventory/ports.ts';
import { code, page, table } from './markdown.ts';

/** Why a run was started. After LeaseOver, which is a reason of outcomes, a run has the reason Retry. */
const triggerTexts: Readonly<Record<TriggerReason, readonly [example: string, text: string]>> = {
  Created: ['Created', 'The component has no run for this entry yet.'],
  ConfigChanged: [
    'ConfigChanged:/spec/components/network/config',
    'A field below `/spec` that the component reads changed, or `spec.suspend`, the labels (`/metadata/labels`), or an abandonment (`/metadata/annotations`) did. `/spec/components/NAME`: the settings of the component were added or removed. Without a path: `spec.mode`, `enabled` of the component, or the size of the entry now lets the component run, or no longer does.',
  ],
  InputChanged: [
    'InputChanged:/status/outputs/network/vnetName',
    'An output that the component reads changed. Without a path: since the last run, its inputs, its registration, or its force annotation changed, as drawbridge found by a comparison, for example after a restart.',
  ],
  InputArrived: [
    'InputArrived:/status/outputs/network/vnetName',
    'All inputs that the last outcome reported as missing hold. The path is one of them; it may also be a field that is now absent.',
  ],
  Forced: ['Forced', 'The annotation `force.inventory.drawbridge.dev/COMPONENT` has a new value, or was removed.'],
  Remote: [
    'Remote:managed/serviceinstances.services.cloud.sap.com',
    'A watched object may have changed. `Remote:unwatched`: the watches of the cluster are unhealthy, and five minutes have passed.',
  ],
  RegistrationChanged: [
    'RegistrationChanged',
    'The registration of the component was created or changed. A new registration has this reason on existing entries.',
  ],
  Interval: ['Interval', 'The interval of the registration passed, or the delay after NotReady or Failed.'],
  Requeue: ['Requeue', '`requeueAfterSeconds` of the last outcome passed.'],
  Retry: ['Retry', 'The backoff after the last Retry passed, or the component had not accepted the call.'],
  Deleting: ['Deleting', 'The entry is being deleted.'],
};

const notRunTexts: Readonly<Record<NotRunReason, string>> = {
  Suspended:
    '`spec.suspend` is true. Set it to false. The state is `Suspended`, and the message has the last outcome. If the entry is being deleted, setting it to false starts the teardown.',
  Disabled: '`spec.components.COMPONENT.enabled` is false. Set it to true.',
  NotApplicable: 'The mode or the labels of the entry do not match the registration.',
  TooLarge: 'The entry is larger than 64 KiB. Move large values to a Secret.',
  RegistrationRefused: 'The registration breaks a rule. See its condition `Accepted`.',
  Abandoned:
    'The entry has the annotation `abandon.inventory.drawbridge.dev/COMPONENT`. The message says who set it and why.',
};

const callFailureTexts: Readonly<Record<CallFailureCode | NotAcceptedCode, string>> = {
  Unreachable:
    'drawbridge could not connect to the endpoint, or cannot use `spec.endpoint`. It retries; see the condition `Reachable` of the registration. If the message begins with `the endpoint accepts no calls`, it has the call that opened the circuit breaker, which may have been for another entry.',
  Busy: 'The component answered 429 or 503. drawbridge retries, not before the time in `Retry-After`, but a change of the inputs or the force annotation starts a run before that. While the circuit breaker of the endpoint is open, no change starts a run: one run starts as the next probe, within 30 s, and the others after a probe that the component accepts. A component that has run with the current inputs keeps its state and reason until five such answers in a row, or until one asks for more than a minute. If the message begins with `the endpoint accepts no calls`, it has the answer that opened the circuit breaker, which may have been for another entry.',
  Timeout: 'The component did not answer within `timeoutSeconds`. Answer 202 for longer work.',
  Cut: 'The connection broke after the request was sent.',
  TooLarge: 'The answer is larger than 131,072 bytes.',
  NotJson: 'The answer is not HTTP, or its body is not JSON. If it is not HTTP, check the port of the endpoint.',
  InvalidOutcome:
    'The answer violates the [contract](component-contract.md), or the outcome does not fit the operation.',
  WrongRun: 'The answer names another run.',
  Refused: 'The component answered 400, 401, or 403. The message says what to check.',
  UnexpectedStatus:
    'The component answered with a status that is not in the contract, such as 404 because `spec.endpoint` leads elsewhere.',
  Crashed: 'The call failed by an error in drawbridge. See its log.',
};

const otherTexts: Readonly<Record<string, string>> = {
  LeaseOver:
    'The component reported no valid outcome before the deadline of the run, within its heartbeat timeout after an answer 202, or within `maxRunSeconds`; the message says which of them, with its value. A report that was answered 401 or 403 does not count, and only the log of the server shows it, in at most one line a minute: anyone may send it. Or a restart or a change of the leader interrupted the run. drawbridge runs it again.',
  MissingAlreadySatisfied:
    'The component reported NotReady, but its missing inputs held when it was called. Check how it reads the entry. If it waits for `noReaders`, no component reads that output: while other objects use what the component created, it must answer `Retry`.',
  NotWritten:
    'The API server rejected the outputs, their removal, or the removal of the access of an abandoned component. The message has the cause.',
  NotStored: 'The API server rejected the record of the run. drawbridge retries.',
  NameTaken:
    'Another object has a name that the run or the access of the component needs. The message names it, and the command that deletes it.',
  GrantNotInForce: 'The API server does not yet grant the component its access to the entry. drawbridge retries.',
  NoCredentialId: 'The API server issues tokens without an ID. Use Kubernetes 1.34 or later.',
  InternalError: 'drawbridge met an unexpected error. It retries; its log has the error.',
  NotRegistered:
    'The component has a run, but no registration: register it again, or abandon it. Or `spec.components` names it, and it is not registered: correct the name, or register it.',
  Forced:
    'The last run was Done, but since then the force annotation has changed. A run is due or in progress, as with `InputsChanged`.',
  InputsChanged:
    'The last run was Done, but since then the inputs or the registration have changed. After a restart or a change of the leader, also the force annotation. A run waits for its turn, as with `Pending`, or is in progress, also after an answer 202.',
  Pending:
    'The first run waits for its turn, or for the answer of the component. At most `maxConcurrent` runs of a component and six runs of an entry are active at a time. No run starts before drawbridge has created the access of the components to the entry, and has proved that the webhook denies writes without a run. If no entry gets a run, see the log of the server.',
  Running:
    'The component answered 202, and has not reported its outcome. The message says since when it runs, and has the last outcome. NEXT of its ReconcileRun has the time at which the run ends without a report. If a report of the run violates the contract, the message has its code and time until the next heartbeat. A component that was Done with the same inputs stays Done meanwhile, and with other inputs keeps `InputsChanged` or `Forced`. With the state `Deleting`, the component tears down, and the message has the last outcome of the teardown; or the teardown waits until this run ends, and the message says until when.',
};

const reasonTable = (texts: Readonly<Record<string, string>>): string =>
  table(
    ['Reason', 'Meaning'],
    Object.entries(texts).map(([reason, text]) => [code(reason), text]),
  );

export const runReasonsPage = (): string =>
  page(
    'Run reasons',
    'docs/generate/run-reasons.ts, whose types are in src/inventory',
    'Why did a component run, and why does it have its state? The values are stable between releases.',
    '## Why a run was started',
    'In `spec.reasons` of a ReconcileRun, in `run.reasons` of a call, in logs, and, up to the colon, in metrics.',
    table(
      ['Example', 'Meaning'],
      Object.values(triggerTexts).map(([example, text]) => [code(example), text]),
    ),
    '## Why no run may start',
    'In `reason` of `status.components` of an entry.',
    reasonTable(notRunTexts),
    '## Why a call failed',
    'In `reason` of `status.components`, of `spec.lastOutcome` of a ReconcileRun, and in metrics. The outcome is Retry.',
    reasonTable(callFailureTexts),
    '## Other reasons',
    'In the same places. The [codes](../reference/codes.md#inventory) `ForeignPath` and `EntryTooLarge` also appear there, with the outcome Failed. With the state `Deleting`, the reason may also be the outcome of the last teardown: `Failed`, `NotReady`, `Progressing`, or `Retry`.',
    reasonTable(otherTexts),
  );
