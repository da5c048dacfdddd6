import {
  bindReasonTexts,
  entryConditionTexts,
  registrationConditionTexts,
  requestConditionTexts,
  summaryConditionTexts,
  templateConditionTexts,
} from './condition-texts.ts';
import { code, codes, page, table } from './markdown.ts';

const conditions = (texts: Readonly<Record<string, string>>): string =>
  table(
    ['Condition', 'Meaning'],
    Object.entries(texts).map(([type, text]) => [code(type), text]),
  );

export const conditionsPage = (): string =>
  page(
    'Conditions and Events',
    'docs/generate/condition-texts.ts, whose types are in src/api',
    'A condition with status False has a reason and a message. A reason can be any [code](codes.md).',
    '## Conditions of templates',
    conditions(templateConditionTexts),
    '## Conditions of requests',
    'True conditions have the reason `Success`, and `Ready` of open access `Open`. If a condition is False and final, create a new request. How long the old one [stays](../concepts/access.md#what-stays-of-a-request) depends on its name and its template.',
    conditions(requestConditionTexts),
    '## Summary conditions',
    'Templates and requests also have the conditions that [kstatus](https://github.com/kubernetes-sigs/cli-utils/blob/master/pkg/kstatus/README.md) reads, for `kubectl wait`, Argo CD, and Flux.',
    conditions(summaryConditionTexts),
    '## Conditions of binding',
    '`Ready` of an APIServiceBinding or bundle is False with the reason of the worst other condition.',
    table(
      ['Condition', 'Reason', 'Meaning'],
      Object.entries(bindReasonTexts).map(([reason, [types, text]]) => [codes(types.split(', ')), code(reason), text]),
    ),
    '## Conditions of the inventory',
    'Of entries:',
    conditions(entryConditionTexts),
    'Of registrations:',
    conditions(registrationConditionTexts),
    '## Events',
    table(
      ['On', 'Reason', 'Meaning'],
      [
        [
          'request',
          codes(['AccessGranted', 'AccessExtended', 'AccessExpired', 'AccessRevoked']),
          'The grant began, was extended, expired, or was revoked early. A Warning with a code is a denial, or says why an approved request waits.',
        ],
        [
          'request',
          code('RequestEnded'),
          'The request ended before access opened: a user deleted or revoked it, or the server did not decide it in time. The note has the reason of a revocation.',
        ],
        [
          'request',
          codes(['EmergencyAccess', 'EmergencyReviewed', 'ReviewOverdue']),
          'Warning: emergency access opened without approvals. Another person reviewed it, or should have by now.',
        ],
        [
          'Pod',
          codes(['PodExec', 'PodAttach', 'PodPortForward', 'PodProxy', 'PodEphemeralContainer']),
          'A user entered the Pod.',
        ],
        ['Pod', code('BreakGlass'), 'Warning: a member of the break-glass group entered the Pod.'],
        [
          'binding',
          codes(['Ready', 'ConversionNotBound']),
          '`Ready` changed; or a kind has versions that need a conversion webhook, and the server serves only one version.',
        ],
        [
          'binding',
          code('WatchRefused'),
          'Warning: one of the clusters no longer lets the server list and watch the kinds that the note names.',
        ],
        ['bound object', code('NotSynced'), 'Warning: the server cannot sync the object; the note has the cause.'],
        ['kubeconfig Secret', code('KubeconfigUpdated'), 'The provider replaced the kubeconfig.'],
        [
          'entry',
          codes(['Done', 'NotReady', 'Progressing', 'Retry', 'Failed', 'Deleted']),
          'The outcome of a component, or its reason, changed, or the message of a Failed. A Warning: Failed, or a Retry because the component is unreachable or gave no valid answer in time, or because the API server rejected a write. Normal: a Retry that the component asked for, also by 429 or 503 (`Busy`), or after a run that ended without an outcome (`LeaseOver`).',
        ],
        [
          'entry',
          codes(['Livelock', 'MissingAlreadySatisfied', 'ReportRejected', 'SecretNotReadable', 'Abandoned']),
          'Warning, one for each: inputs repeatedly return to earlier values; a component waits for what already holds; a report violates the contract. The user who named a Secret may not read it. A user abandoned a component, whose resources stay.',
        ],
      ],
    ),
    'Events are best effort: for each object and kind of work, such as runs or abandonments, the server records 25 at once, then one every five minutes. For all objects together, each replica writes at most 300 for a kind of work at once, then 5 a second. It drops further ones. Logs and metrics have every run, and the audit journal has every abandonment.',
    '## Why is a request denied?',
    '```sh\nkubectl create --dry-run=server -f request.yaml\n```',
    'This command creates nothing. The server answers with warnings: first each rule that fails, with the way to fix it, then each rule that it could not check, such as whether the Pod in `spec.targetPod` runs when access opens. The last warning counts the rules that passed. A denial without a dry run names only the first reason.',
  );
