import {
  bindReasonTexts,
  entryConditionTexts,
  notifyReasonTexts,
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
    'The reason of a False condition can be any [code](codes.md).',
    '## Conditions of templates',
    conditions(templateConditionTexts),
    '## Conditions of requests',
    'True conditions have the reason `Success`, and `Ready` of open access `Open`, of templates `Ready`. If one is False and final, create a new request; the old one [stays for a while](../concepts/access.md#what-stays-of-a-request).',
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
    '## Conditions of notifications',
    '`Ready` of a NotificationProvider or NotificationSubscription is False for these reasons. Messages wait for at most 24 hours.',
    table(
      ['Of', 'Reason', 'Meaning'],
      Object.entries(notifyReasonTexts).map(([reason, [kind, text]]) => [kind, code(reason), text]),
    ),
    '## Events',
    table(
      ['On', 'Reason', 'Meaning'],
      [
        [
          'request',
          codes(['AccessGranted', 'AccessExtended', 'AccessExpired', 'AccessRevoked']),
          'A Warning with a code is a denial, or says why an approved request waits.',
        ],
        [
          'request',
          code('RequestEnded'),
          'The request ended before access opened: by a user, whose reason the note has, or undecided.',
        ],
        [
          'request',
          codes(['EmergencyAccess', 'EmergencyReviewed', 'ReviewOverdue']),
          'Warning: emergency access opened without approvals, was reviewed, or should have been.',
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
          '`Ready` changed; or the versions of a kind need a conversion webhook, so that only one is served.',
        ],
        [
          'binding',
          code('WatchRefused'),
          'Warning: a cluster no longer lets drawbridge list and watch the kinds that the note names.',
        ],
        ['bound object', code('NotSynced'), 'Warning: drawbridge cannot sync the object; the note has the cause.'],
        ['kubeconfig Secret', code('KubeconfigUpdated'), 'The provider replaced the kubeconfig.'],
        [
          'entry',
          codes(['Done', 'NotReady', 'Progressing', 'Retry', 'Failed', 'Deleted']),
          'The outcome of a component, its reason, or the message of a Failed changed. Warnings: Failed, and a Retry because the component is unreachable or gave no valid answer in time, or the API server rejected a write. Normal: a Retry that the component asked for, also by 429 or 503 (`Busy`), or after a run without an outcome (`LeaseOver`).',
        ],
        [
          'entry',
          codes(['Livelock', 'MissingAlreadySatisfied', 'ReportRejected', 'SecretNotReadable', 'Abandoned']),
          'Warnings: see [codes](codes.md#inventory).',
        ],
      ],
    ),
    'Events are best effort. For each object and kind of work, such as runs, drawbridge records 25 at once, then one every five minutes. For all objects together, a replica writes 300 of a kind of work at once, then 5 a second. It drops further ones. Logs and metrics have every run, and the audit journal every abandonment.',
    '## Why is a request denied?',
    '```sh\nkubectl create --dry-run=server -f request.yaml\n```',
    'This creates nothing. The warnings are each rule that fails, with the way to fix it, then each that drawbridge could not check, and the number of rules that passed. A denial without a dry run names only the first reason.',
  );
