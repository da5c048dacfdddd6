import { type Static, Type } from 'typebox';
import { conditions, listOf, objectName, oneOf, stringMap } from '../schema/fields.ts';
import { ageColumn, column, defineKind, type ObjectOf } from '../schema/kind.ts';
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
          operator: labelText('In, NotIn, Exists, or DoesNotExist.'),
          values: Type.Optional(
            listOf(Type.String({ maxLength: 63 }), 64, { description: 'The values that In and NotIn compare with.' }),
          ),
        }),
        16,
        { description: 'Requirements; all must match.' },
      ),
    ),
  },
  { description: 'Entries by label. If absent, the component runs for all in its modes.' },
);

/** CEL: plain HTTP on a loopback address. */
const isLoopbackRule = "self.url.matches('^http://(127[.]0[.]0[.]1|localhost|[[]::1[]])(:[0-9]{1,5})?(/.*)?$')";

const endpoint = Type.Object(
  {
    url: Type.Optional(
      Type.String({
        description: 'Base URL, such as https://network.example.org/base. drawbridge appends /v1/reconcile.',
        maxLength: 1024,
      }),
    ),
    service: Type.Optional(
      Type.Object(
        {
          namespace: objectName('Namespace of the Service.'),
          name: objectName('Name of the Service.'),
          port: Type.Integer({ description: 'Port of the Service.', default: 443, minimum: 1, maximum: 65_535 }),
        },
        { description: 'A Service of this cluster, called over HTTPS.' },
      ),
    ),
  },
  {
    description: 'Address of the component: url or service.',
    'x-kubernetes-validations': [
      {
        rule: 'has(self.url) != has(self.service)',
        message: 'endpoint must set either url or service',
      },
      {
        rule: `!has(self.url) || self.url.startsWith('https://') || ${isLoopbackRule}`,
        message:
          'must be https; plain http is allowed only for loopback addresses and with the flag --allow-loopback-http',
        fieldPath: '.url',
      },
    ],
  },
);

const remoteWatch = Type.Object({
  cluster: oneOf(['managed', 'management'], {
    description:
      'managed: the cluster of the entry. management: this cluster, where the label inventory.drawbridge.dev/entry-uid names the entry.',
  }),
  group: Type.String({ description: 'API group; empty for the core group.', default: '', maxLength: 253 }),
  version: Type.String({ description: 'API version.', minLength: 1, maxLength: 63 }),
  resource: Type.String({ description: 'Plural resource name.', minLength: 1, maxLength: 253 }),
  namespace: Type.Optional(
    objectName(
      'If absent: in cluster managed, all namespaces; in cluster management, that of the entry, and cluster-scoped objects.',
    ),
  ),
  labelSelector: Type.Optional(
    Type.String({ description: 'Label selector in kubectl -l syntax. If absent, all objects.', maxLength: 1024 }),
  ),
  fields: oneOf(['metadata', 'spec', 'status'], {
    description:
      'The part of an object whose change triggers a run, as its creation and deletion do. metadata: labels and annotations. spec: the generation, or for a kind without one, all fields but metadata and status.',
    default: 'spec',
  }),
});

const seconds = (description: string, fallback: number, minimum: number, maximum: number) =>
  Type.Integer({ description: `${description} Seconds.`, default: fallback, minimum, maximum });

export const componentReconcilerKind = defineKind({
  resource: componentReconcilers,
  description:
    'A ComponentReconciler registers a component: its endpoint, the entries that it runs for, and the fields that it reads and writes.',
  spec: Type.Object(
    {
      endpoint,
      protocol: oneOf(['v1'], { description: 'Version of the component contract.', default: 'v1' }),
      caBundle: Type.Optional(
        Type.String({
          description: 'CA certificate in PEM that signed the certificate of the endpoint. drawbridge trusts no other.',
          maxLength: 65_536,
        }),
      ),
      selector: Type.Optional(entrySelector),
      modes: listOf(mode(), 2, {
        description: 'Modes of the entries that the component runs for.',
        default: ['managed', 'byoc'],
        minItems: 1,
      }),
      reads: listOf(readPath('A field.'), 64, {
        description:
          'JSON pointers to the fields of the entry whose changes trigger a run, as do those of the component’s own configuration.',
        default: [],
      }),
      writes: Type.Optional(
        listOf(writePath('A field.'), 8, {
          description:
            'JSON pointers to the fields that the component owns. Default: /status/outputs/NAME, where NAME is its name.',
          minItems: 1,
        }),
      ),
      kubeconfig: oneOf(['none', 'read'], {
        description:
          'read: the component may read the Secret with the kubeconfig of the cluster, and runs when it changes. The owner of /status/outputs/kubeconfig may always write it.',
        default: 'none',
      }),
      remoteWatches: listOf(remoteWatch, 16, {
        description: 'Objects outside the inventory whose changes trigger a run.',
        default: [],
      }),
      intervalSeconds: seconds(
        'From Done to the next run if nothing triggers one earlier, with 10 % jitter. After NotReady: this or 10 minutes, whichever is shorter, with 20 % jitter.',
        3600,
        10,
        604_800,
      ),
      timeoutSeconds: seconds('For the answer of the component to a call.', 5, 1, 30),
      leaseSeconds: seconds(
        'The longest time between reports of an asynchronous run, unless the component names another in an answer or heartbeat.',
        60,
        5,
        3600,
      ),
      maxRunSeconds: seconds('The longest asynchronous run, despite heartbeats.', 3600, 10, 86_400),
      maxConcurrent: Type.Integer({
        description: 'Maximum number of concurrent runs over all entries.',
        default: 32,
        minimum: 1,
        maximum: 1024,
      }),
      retry: Type.Object(
        {
          baseSeconds: seconds('Upper bound of the first delay.', 1, 1, 3600),
          capSeconds: seconds('Upper bound of every delay.', 300, 1, 86_400),
        },
        {
          description: 'Backoff after a Retry outcome: random delays whose upper bound doubles with each attempt.',
          default: { baseSeconds: 1, capSeconds: 300 },
        },
      ),
      notReadyAlertAfterSeconds: seconds(
        'In NotReady, until drawbridge_inventory_notready_entries counts the entry.',
        900,
        0,
        604_800,
      ),
    },
    {
      description: 'How and when drawbridge calls the component.',
      'x-kubernetes-validations': [
        {
          rule: "has(self.caBundle) || (has(self.endpoint.url) && self.endpoint.url.startsWith('http://'))",
          message:
            'an HTTPS endpoint requires caBundle; set it to the CA certificate that signed the certificate of the endpoint',
          reason: 'FieldValueRequired',
          fieldPath: '.caBundle',
        },
        {
          rule: 'self.retry.baseSeconds <= self.retry.capSeconds',
          message: 'baseSeconds is greater than capSeconds; set it to at most capSeconds',
          fieldPath: '.retry',
        },
      ],
    },
  ),
  status: Type.Object(
    { conditions: Type.Optional(conditions) },
    { description: 'Observed state of this registration.' },
  ),
  rules: [
    {
      rule: `self.metadata.name.matches('${componentNamePattern}')`,
      message:
        'metadata.name must have at most 40 characters: lowercase letters, digits, and dashes, starting with a letter and ending with a letter or digit',
    },
  ],
  printerColumns: [
    column('Accepted', '.status.conditions[?(@.type=="Accepted")].status', 'Whether drawbridge runs the component.'),
    column('Reachable', '.status.conditions[?(@.type=="Reachable")].status', 'Whether the endpoint accepts calls.'),
    ageColumn,
    column(
      'Cyclic',
      '.status.conditions[?(@.type=="Cyclic")].status',
      'Whether outputs of the component affect its own inputs.',
      {
        priority: 1,
      },
    ),
    column(
      'Refused',
      '.status.conditions[?(@.type=="Accepted")].message',
      'Why drawbridge does not run the component.',
      {
        priority: 1,
      },
    ),
    column('Unreachable', '.status.conditions[?(@.type=="Reachable")].message', 'Why the endpoint accepts no calls.', {
      priority: 1,
    }),
  ],
});

export type ComponentReconciler = ObjectOf<typeof componentReconcilerKind>;
/** Its changes trigger runs. */
export type RemoteWatch = Static<typeof remoteWatch>;
