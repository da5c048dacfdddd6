import { type Static, Type } from 'typebox';
import { conditions, listOf, objectName, opaqueObject, time } from '../schema/fields.ts';
import { ageColumn, column, defineKind, type ObjectOf, readObject } from '../schema/kind.ts';
import type { Read } from '../schema/read.ts';
import { maxMissing, missingInput, mode } from './fields.ts';
import { clusterInventories } from './names.ts';

const text = (description: string) => Type.String({ description, maxLength: 1024 });

/** Who named the Secret of a supplied kubeconfig, as the API server authenticated them. */
const setter = Type.Object(
  {
    username: Type.String({ description: 'The user name.', minLength: 1, maxLength: 1024 }),
    uid: Type.String({ description: 'The user’s uid, where the authenticator has one.', default: '', maxLength: 1024 }),
    groups: listOf(text('A group.'), 1024, { description: 'The groups of the user at that time.', default: [] }),
    extra: Type.Optional(
      Type.Record(Type.String(), listOf(text('A value.'), 64), {
        description: 'What else the authenticator said of the user.',
        maxProperties: 64,
      }),
    ),
  },
  {
    description:
      'Who set kubeconfigSecretRef. Set by the admission webhook, whatever was sent: only what this user may read is used.',
  },
);

export type Setter = Static<typeof setter>;

/** Most components of one entry. */
const maxComponents = 64;

const component = Type.Object(
  {
    enabled: Type.Boolean({
      description: 'False: the component is not run for this cluster. What it made stays.',
      default: true,
    }),
    config: Type.Optional(opaqueObject('What the component is to bring about. Its shape is up to the component.')),
  },
  // A component may bring fields of its own here.
  { 'x-kubernetes-preserve-unknown-fields': true },
);

/** Whoever does not know a state has to take it for Progressing. */
const state = Type.Union(
  [
    Type.Literal('Done'),
    Type.Literal('NotReady'),
    Type.Literal('Progressing'),
    Type.Literal('Retrying'),
    Type.Literal('Failed'),
    Type.Literal('NotApplicable'),
    Type.Literal('Deleting'),
  ],
  { description: 'What has come of the component: Done, or what keeps it from it.' },
);

const componentStatus = Type.Object({
  name: objectName('The name of the component.'),
  state,
  reason: Type.Optional(Type.String({ description: 'Why, as one word for programs.', maxLength: 64 })),
  message: Type.Optional(Type.String({ description: 'Why, for people.', maxLength: 1024 })),
  missing: Type.Optional(
    Type.Array(missingInput, {
      description: 'The inputs that it waits for.',
      maxItems: maxMissing,
      'x-kubernetes-list-type': 'atomic',
    }),
  ),
  observedInputs: Type.Optional(
    Type.String({ description: 'The digest of the inputs that this was found with.', maxLength: 64 }),
  ),
  since: time('Since when it is in this state.'),
});

export type ComponentState = Static<typeof state>;
export type ComponentStatus = Static<typeof componentStatus>;

export const clusterInventoryKind = defineKind({
  resource: clusterInventories,
  description:
    'A ClusterInventory is the entry of one cluster: what it is to be, what its components have found out or made, and how far they are.',
  spec: Type.Object(
    {
      mode: mode({
        description: 'managed: components make the cluster. byoc: it is there already, and is never deleted.',
        default: 'managed',
      }),
      cluster: Type.Optional(opaqueObject('Information about the cluster, free-form.')),
      suspend: Type.Boolean({ description: 'True: no run is started.', default: false }),
      kubeconfigSecretRef: Type.Optional(
        Type.Object(
          {
            name: objectName('The name of the Secret.'),
            key: Type.String({ description: 'The key in it.', default: 'config', minLength: 1, maxLength: 253 }),
          },
          {
            description: 'For byoc: the Secret of this namespace with the kubeconfig of a cluster administrator.',
          },
        ),
      ),
      kubeconfigSetBy: Type.Optional(setter),
      components: Type.Optional(
        Type.Record(Type.String(), component, {
          description: 'The components by name. One that is registered for this cluster runs without being named here.',
          maxProperties: maxComponents,
        }),
      ),
    },
    {
      description: 'What the cluster is to be.',
      'x-kubernetes-validations': [
        {
          rule: 'self.mode == oldSelf.mode',
          message: 'mode cannot change: make a new entry',
          reason: 'FieldValueForbidden',
          fieldPath: '.mode',
        },
        {
          rule: "self.mode == 'byoc' || !has(self.kubeconfigSecretRef)",
          message: 'kubeconfigSecretRef is for mode byoc; in mode managed a component makes the kubeconfig',
          reason: 'FieldValueForbidden',
          fieldPath: '.kubeconfigSecretRef',
        },
      ],
    },
  ),
  status: Type.Object(
    {
      outputs: Type.Optional(
        Type.Record(Type.String(), opaqueObject('What one component publishes.'), {
          description: 'What the components publish, one subtree for each owner. Never a secret: only where it is.',
          maxProperties: maxComponents,
        }),
      ),
      components: Type.Optional(
        Type.Array(componentStatus, {
          description: 'How far each component is.',
          maxItems: maxComponents,
          'x-kubernetes-list-type': 'map',
          'x-kubernetes-list-map-keys': ['name'],
        }),
      ),
      conditions: Type.Optional(conditions),
    },
    { description: 'What has come of it.' },
  ),
  printerColumns: [
    column('Mode', '.spec.mode', 'Who makes the cluster.'),
    column('Ready', '.status.conditions[?(@.type=="Ready")].status', 'Whether every component is done.'),
    column('Waiting For', '.status.conditions[?(@.type=="Ready")].message', 'What is missing.'),
    column('Since', '.status.conditions[?(@.type=="Ready")].lastTransitionTime', 'Since when.', { type: 'date' }),
    ageColumn,
  ],
});

export type ClusterInventory = ObjectOf<typeof clusterInventoryKind>;

/** What free-form content lies below `config`, `cluster` and `outputs` is handed on as it is: hostile. */
export function readClusterInventory(object: unknown): Read<ClusterInventory> {
  return readObject(clusterInventoryKind, object);
}
