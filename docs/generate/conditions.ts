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
    'True conditions have the reason `Success`. After a final False, create a new request; the old one deletes itself after the time that it asked for.',
    conditions(requestConditionTexts),
    '## Summary conditions',
    'Templates and requests also carry the conditions that [kstatus](https://github.com/kubernetes-sigs/cli-utils/blob/master/pkg/kstatus/README.md) reads, for `kubectl wait`, Argo CD, and Flux.',
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
          codes(['AccessGranted', 'AccessExpired', 'AccessRevoked']),
          'The grant began, expired, or was revoked early. A Warning with a code is a denial.',
        ],
        [
          'pod',
          codes(['PodExec', 'PodAttach', 'PodPortForward', 'PodProxy', 'PodEphemeralContainer']),
          'A user entered the pod.',
        ],
        ['pod', code('BreakGlass'), 'Warning: a member of the break-glass group entered the pod.'],
        [
          'binding',
          codes(['Ready', 'ConversionNotBound']),
          '`Ready` changed, with its reason if False; or a kind has versions that need a conversion webhook, and one version is served.',
        ],
        ['bound object', code('NotSynced'), 'Warning: the object cannot be synced; the note has the cause.'],
        [
          'kubeconfig Secret',
          codes(['KubeconfigUpdated', 'AnotherKonnector', 'ForeignConsumerSecret']),
          'The provider replaced the kubeconfig, or `SoleKonnector` became False.',
        ],
        [
          'entry',
          codes(['Done', 'NotReady', 'Progressing', 'Retry', 'Failed', 'Deleted']),
          'The outcome of a component changed.',
        ],
        [
          'entry',
          codes(['Livelock', 'MissingAlreadySatisfied', 'SecretNotReadable']),
          'Warning: inputs return to earlier values; a component waits for an input that is present; or the user who named a Secret may not read it.',
        ],
      ],
    ),
    '## Why not?',
    '```sh\nkubectl create --dry-run=server -f request.yaml\n```',
    'This creates nothing and answers with one warning for each rule: `pass`, `FAIL` with what would make it pass, or `????` if that depends on a template that does not exist. It names all reasons at once; a denial names the first.',
  );
