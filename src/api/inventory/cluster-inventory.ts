import { type Static, Type } from 'typebox';
import { conditions, listOf, objectName, oneOf, opaqueObject, time } from '../schema/fields.ts';
import { ageColumn, column, defineKind, type ObjectOf } from '../schema/kind.ts';
import { maxColumnText, maxMissing, missingInput, mode } from './fields.ts';
import { clusterInventories, maxComponents } from './names.ts';

const text = (description: string) => Type.String({ description, maxLength: 1024 });

const kubeconfigSetter = Type.Object(
  {
    username: Type.String({ description: 'The user name.', minLength: 1, maxLength: 1024 }),
    uid: Type.String({
      description: 'Empty if the authenticator provides none.',
      default: '',
      maxLength: 1024,
    }),
    groups: listOf(text('A group.'), 1024, {
      description: 'The user’s groups at the time of the write.',
      default: [],
    }),
    extra: Type.Optional(
      Type.Record(Type.String(), listOf(text('A value.'), 64), {
        description: 'Extra fields of the authenticator, without those named authentication.kubernetes.io/….',
        maxProperties: 64,
      }),
    ),
  },
  {
    description:
      'Who set kubeconfigSecretRef. The admission webhook sets it, over any submitted value. drawbridge uses the Secret only if this user may read it.',
  },
);

/** Of `spec.kubeconfigSecretRef`, as the webhook recorded them. */
export type KubeconfigSetter = Static<typeof kubeconfigSetter>;

const component = Type.Object(
  {
    enabled: Type.Boolean({
      description:
        'If false, drawbridge does not reconcile the component here, and what it created stays until the ClusterInventory is deleted.',
      default: true,
    }),
    config: Type.Optional(opaqueObject('Configuration of the component. The component defines the schema.')),
  },
  // Components may define further fields, and list them in `reads` of their registrations.
  { 'x-kubernetes-preserve-unknown-fields': true },
);

const state = oneOf(
  ['Done', 'NotReady', 'Progressing', 'Suspended', 'Retrying', 'Failed', 'NotApplicable', 'Deleting'],
  {
    description:
      'Done: the component reconciled the current inputs. NotReady: it waits for the inputs in missing. Progressing: a run is due or active, or the component waits for an external operation. Suspended: spec.suspend prevents a run. Retrying: the last run failed temporarily or could not start, or the endpoint accepts no calls. Failed: the last run failed permanently, or drawbridge cannot run the component. NotApplicable: drawbridge does not run it for this entry. Deleting: the entry is being deleted, and the component must delete what it created; or drawbridge retries to remove the outputs or the record of an abandoned component. Clients must treat an unknown state as Progressing.',
  },
);

const componentStatus = Type.Object({
  name: objectName('The name of the component.'),
  state,
  reason: Type.Optional(
    Type.String({
      description: 'For programs; absent if the state needs none.',
      maxLength: 64,
    }),
  ),
  message: Type.Optional(Type.String({ description: 'For people.', maxLength: 1024 })),
  missing: Type.Optional(
    Type.Array(missingInput, {
      description: 'The inputs that the component waits for.',
      maxItems: maxMissing,
      'x-kubernetes-list-type': 'atomic',
    }),
  ),
  observedInputs: Type.Optional(
    Type.String({
      description:
        'Digest of the inputs of the last run that ended and whose call the component accepted. Absent if unknown, for example because they changed during the run.',
      maxLength: 64,
    }),
  ),
  since: time('When the component entered this state.'),
});

export type ComponentState = Static<typeof state>;
export type ComponentStatus = Static<typeof componentStatus>;

export const clusterInventoryKind = defineKind({
  resource: clusterInventories,
  description:
    'A ClusterInventory describes one cluster: its desired configuration, the outputs of its components, and the state of each component.',
  spec: Type.Object(
    {
      mode: mode({
        description:
          'managed: components create the cluster. byoc (bring your own cluster): the cluster already exists, and no component may delete it.',
        default: 'managed',
      }),
      cluster: Type.Optional(opaqueObject('Free-form information about the cluster.')),
      suspend: Type.Boolean({
        description:
          'If true, drawbridge starts no runs; current ones continue. A deleted ClusterInventory stays while this is true and a component has something to tear down: one that ran, and was not abandoned.',
        default: false,
      }),
      kubeconfigSecretRef: Type.Optional(
        Type.Object(
          {
            name: objectName('The name of the Secret.'),
            key: Type.String({
              description: 'The key in the Secret.',
              default: 'config',
              minLength: 1,
              maxLength: 253,
            }),
          },
          {
            description: 'For mode byoc: a Secret in this namespace with the kubeconfig of a cluster administrator.',
          },
        ),
      ),
      kubeconfigSetBy: Type.Optional(kubeconfigSetter),
      components: Type.Optional(
        Type.Record(Type.String(), component, {
          description:
            'Settings of components by name. Registered components run even if they are not listed. The API server keeps unknown fields of a component; the webhook warns about those that no registration reads.',
          maxProperties: maxComponents,
        }),
      ),
    },
    {
      description: 'Desired state of the cluster.',
      'x-kubernetes-validations': [
        {
          rule: 'self.mode == oldSelf.mode',
          message: 'mode is immutable; create a new ClusterInventory',
          reason: 'FieldValueForbidden',
          fieldPath: '.mode',
        },
        {
          rule: "self.mode == 'byoc' || !has(self.kubeconfigSecretRef)",
          message:
            'kubeconfigSecretRef is set in mode managed; only mode byoc allows it, because a component creates the kubeconfig in mode managed; remove the field',
          reason: 'FieldValueForbidden',
          fieldPath: '.kubeconfigSecretRef',
        },
      ],
    },
  ),
  status: Type.Object(
    {
      outputs: Type.Optional(
        Type.Record(Type.String(), opaqueObject('Outputs of one component.'), {
          description:
            'Outputs of the components. Each field belongs to the component of that name, or to the one that lists it in spec.writes. Components must not write secret values here, only references to Secrets; drawbridge does not check that.',
          maxProperties: maxComponents,
        }),
      ),
      components: Type.Optional(
        Type.Array(componentStatus, {
          description: 'State of each component.',
          maxItems: maxComponents,
          'x-kubernetes-list-type': 'map',
          'x-kubernetes-list-map-keys': ['name'],
        }),
      ),
      waitingFor: Type.Optional(
        Type.String({
          description: 'The message of the condition Ready, cut to the width of a column.',
          maxLength: maxColumnText,
        }),
      ),
      conditions: Type.Optional(conditions),
    },
    { description: 'Observed state of the cluster.' },
  ),
  printerColumns: [
    column('Mode', '.spec.mode', 'Whether components create the cluster or it already exists.'),
    column('Ready', '.status.conditions[?(@.type=="Ready")].status', 'Whether every applicable component is Done.'),
    column('Waiting For', '.status.waitingFor', 'Why Ready is not True, or a note about the entry, in short.'),
    column('Since', '.status.conditions[?(@.type=="Ready")].lastTransitionTime', 'Time of the last change of Ready.', {
      type: 'date',
    }),
    ageColumn,
    column('Suspended', '.spec.suspend', 'Whether drawbridge starts no runs.', { type: 'boolean', priority: 1 }),
    column(
      'Message',
      '.status.conditions[?(@.type=="Ready")].message',
      'Why Ready is not True, usually the components that are not Done; or a note about the entry.',
      { priority: 1 },
    ),
  ],
});

export type ClusterInventory = ObjectOf<typeof clusterInventoryKind>;
