import type { FlagSpec } from './command-spec.ts';

export const outputForms = ['table', 'wide', 'json', 'yaml', 'name'] as const;
export type OutputForm = (typeof outputForms)[number];

/** Of every command, with the names that kubectl uses. */
export const commonFlags: readonly FlagSpec[] = [
  {
    name: 'namespace',
    short: 'n',
    value: 'NAME',
    help: 'The namespace. Default: the namespace of the context.',
    complete: 'namespaces',
  },
  { name: 'all-namespaces', short: 'A', help: 'All namespaces, for commands that list, and for revoke --user.' },
  {
    name: 'output',
    short: 'o',
    value: 'FORM',
    help: 'table, wide, json, yaml, or name. Default: table.',
    complete: outputForms,
  },
  {
    name: 'kubeconfig',
    value: 'FILE',
    help: 'The kubeconfig. Default: KUBECONFIG, then ~/.kube/config.',
    complete: 'files',
  },
  {
    name: 'context',
    value: 'NAME',
    help: 'The context of the kubeconfig. Default: its current context.',
    complete: 'contexts',
  },
  { name: 'as', value: 'USER', help: 'Impersonate a user; needs the permission impersonate.' },
  {
    name: 'as-group',
    value: 'GROUP',
    repeated: true,
    help: 'Impersonate a group, together with --as; may be given more than once.',
  },
  { name: 'as-uid', value: 'UID', help: 'Impersonate a uid, together with --as.' },
  {
    name: 'request-timeout',
    value: 'DURATION',
    help: 'How long to wait for the answer to one call, such as 5s; 0 sets no limit. Default: 30s. Does not apply to watches.',
  },
  { name: 'help', short: 'h', help: 'Show the help of the command.' },
];
