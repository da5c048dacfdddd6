import { type Static, Type } from 'typebox';
import { conditions, listOf, objectName, stringMap } from '../schema/fields.ts';
import { ageColumn, column, defineKind, type ObjectOf, readObject } from '../schema/kind.ts';
import type { Read } from '../schema/read.ts';
import { mode, readPath, writePath } from './fields.ts';
import { componentNamePattern, componentReconcilers } from './names.ts';

const labelText = (description: string) => Type.String({ description, maxLength: 316 });

const entrySelector = Type.Object(
  {
    matchLabels: Type.Optional(stringMap('Labels with their values; all must match.', 63)),
    matchExpressions: Type.Optional(
      listOf(
        Type.Object({
          key: labelText('The name of the label.'),
          operator: labelText('In, NotIn, Exists or DoesNotExist.'),
          values: Type.Optional(
            listOf(Type.String({ maxLength: 63 }), 64, { description: 'The values that In and NotIn compare with.' }),
          ),
        }),
        16,
        { description: 'Requirements; all must match.' },
      ),
    ),
  },
  { description: 'The entries that the component is for, by their labels. Absent: all.' },
);

const loopback = "self.url.matches('^http://(127[.]0[.]0[.]1|localhost|[[]::1[]])(:[0-9]{1,5})?(/.*)?$')";

const endpoint = Type.Object(
  {
    url: Type.Optional(
      Type.String({
        description: 'Its address, such as https://network.example.org/base. /v1/reconcile is appended.',
        maxLength: 1024,
      }),
    ),
    service: Type.Optional(
      Type.Object(
        {
          namespace: objectName('Its namespace.'),
          name: objectName('Its name.'),
          port: Type.Integer({ description: 'The port.', default: 443, minimum: 1, maximum: 65_535 }),
        },
        { description: 'A Service of this cluster, called by HTTPS.' },
      ),
    ),
    inProcess: Type.Optional(
      Type.String({ description: 'The name of a component that is built into the server.', maxLength: 64 }),
    ),
  },
  {
    description: 'Where the component is: one of url, service and inProcess.',
    'x-kubernetes-validations': [
      {
        rule: '[has(self.url), has(self.service), has(self.inProcess)].filter(given, given).size() == 1',
        message: 'needs exactly one of url, service and inProcess',
      },
      {
        rule: `!has(self.url) || self.url.startsWith('https://') || ${loopback}`,
        message: 'must be https; plain http is for loopback addresses alone, and for servers that allow it',
        fieldPath: '.url',
      },
    ],
  },
);

const remoteWatch = Type.Object({
  cluster: Type.Union([Type.Literal('managed'), Type.Literal('management')], {
    description:
      'managed: the cluster of the entry. management: this one; objects there belong to an entry by the label inventory.drawbridge.dev/entry-uid.',
  }),
  group: Type.String({ description: 'The API group; empty for the core group.', default: '', maxLength: 253 }),
  version: Type.String({ description: 'The API version.', minLength: 1, maxLength: 63 }),
  resource: Type.String({ description: 'The plural name of the kind.', minLength: 1, maxLength: 253 }),
  namespace: Type.Optional(objectName('The namespace to watch. Absent: all.')),
  labelSelector: Type.Optional(
    Type.String({ description: 'The objects to watch, as kubectl -l takes it. Absent: all.', maxLength: 1024 }),
  ),
  fields: Type.Union([Type.Literal('metadata'), Type.Literal('spec'), Type.Literal('status')], {
    description: 'What has to change for a run: labels and annotations, the generation, or the status.',
    default: 'spec',
  }),
});

const seconds = (description: string, fallback: number, minimum: number, maximum: number) =>
  Type.Integer({ description: `${description} Seconds.`, default: fallback, minimum, maximum });

export const componentReconcilerKind = defineKind({
  resource: componentReconcilers,
  description:
    'A ComponentReconciler registers a component: where it is called, for which entries, what it reads of them and what it writes.',
  spec: Type.Object(
    {
      endpoint,
      protocol: Type.Union([Type.Literal('v1')], { description: 'The contract that it speaks.', default: 'v1' }),
      caBundle: Type.Optional(
        Type.String({
          description: 'PEM of the authority that its certificate has to be signed by. No other is trusted.',
          maxLength: 65_536,
        }),
      ),
      selector: Type.Optional(entrySelector),
      modes: listOf(mode(), 2, {
        description: 'The modes of entries that it is for.',
        default: ['managed', 'byoc'],
        minItems: 1,
      }),
      reads: listOf(readPath('A field.'), 64, {
        description:
          'The fields of the entry whose changes are worth a run, besides its own configuration, as JSON pointers.',
        default: [],
      }),
      writes: Type.Optional(
        listOf(writePath('A field.'), 8, {
          description: 'The fields that it owns. Default: /status/outputs/NAME.',
          minItems: 1,
        }),
      ),
      kubeconfig: Type.Union([Type.Literal('none'), Type.Literal('read')], {
        description:
          'read: it may read the Secret with the kubeconfig of the cluster, and runs when there is a new one. Who owns /status/outputs/kubeconfig may always write it.',
        default: 'none',
      }),
      remoteWatches: listOf(remoteWatch, 16, {
        description: 'Objects outside of the inventory whose changes are worth a run.',
        default: [],
      }),
      intervalSeconds: seconds('How often it runs without any other reason, give or take 10 %.', 3600, 10, 604_800),
      timeoutSeconds: seconds('How long a call may take.', 5, 1, 30),
      leaseSeconds: seconds('How long a run that goes on after the call may be silent.', 60, 5, 3600),
      maxRunSeconds: seconds('How long a run may take with all its heartbeats.', 3600, 10, 86_400),
      maxConcurrent: Type.Integer({
        description: 'Runs at a time, over all entries.',
        default: 32,
        minimum: 1,
        maximum: 1024,
      }),
      retry: Type.Object(
        {
          baseSeconds: seconds('The longest first delay.', 1, 1, 3600),
          capSeconds: seconds('The longest of all.', 300, 1, 86_400),
        },
        {
          description: 'Delays after runs that are to be retried: random, up to twice as long each time.',
          default: { baseSeconds: 1, capSeconds: 300 },
        },
      ),
      notReadyAlertAfterSeconds: seconds('How long it may wait for an input before metrics tell.', 900, 0, 604_800),
    },
    {
      description: 'How the component is called, and for what.',
      'x-kubernetes-validations': [
        {
          rule: "has(self.caBundle) || has(self.endpoint.inProcess) || (has(self.endpoint.url) && self.endpoint.url.startsWith('http://'))",
          message: 'a component that is called by HTTPS needs the authority that its certificate is signed by',
          reason: 'FieldValueRequired',
          fieldPath: '.caBundle',
        },
        {
          rule: 'self.retry.baseSeconds <= self.retry.capSeconds',
          message: 'baseSeconds must not be above capSeconds',
          fieldPath: '.retry',
        },
      ],
    },
  ),
  status: Type.Object(
    { conditions: Type.Optional(conditions) },
    { description: 'What has been found out about this registration.' },
  ),
  rules: [
    {
      rule: `self.metadata.name.matches('${componentNamePattern}')`,
      message: 'the name must be small letters, digits and dashes, at most 40, beginning with a letter',
    },
  ],
  printerColumns: [
    column('Accepted', '.status.conditions[?(@.type=="Accepted")].status', 'Whether it is run at all.'),
    column('Reachable', '.status.conditions[?(@.type=="Reachable")].status', 'Whether its endpoint answers.'),
    ageColumn,
  ],
});

export type ComponentReconciler = ObjectOf<typeof componentReconcilerKind>;
export type RemoteWatch = Static<typeof remoteWatch>;

export function readComponentReconciler(object: unknown): Read<ComponentReconciler> {
  return readObject(componentReconcilerKind, object);
}
