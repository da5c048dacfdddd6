import { Type } from 'typebox';
import { listOf, oneOf, opaqueObject } from '../schema/fields.ts';
import { ageColumn, defineKind, type ObjectOf } from '../schema/kind.ts';
import { bindConditionList, readyColumn } from './condition.ts';
import { boundSchemas } from './names.ts';

const nameField = (description: string) => Type.String({ description, maxLength: 253 });
const nameList = (description: string) => listOf(Type.String({ maxLength: 253 }), 64, { description });

/** As in a CustomResourceDefinition. */
const crdNames = (description: string) =>
  Type.Object(
    {
      plural: nameField('The name in URLs.'),
      kind: nameField('The name in manifests.'),
      singular: Type.Optional(nameField('The singular name.')),
      listKind: Type.Optional(nameField('The kind of a list of the objects.')),
      shortNames: Type.Optional(nameList('Short names for kubectl.')),
      categories: Type.Optional(nameList('Categories of the resource, such as all: kubectl get CATEGORY lists it.')),
    },
    { description },
  );

const text = (description: string, maxLength = 1024) => Type.String({ description, maxLength });

const scale = Type.Object(
  {
    specReplicasPath: text('The JSON path of the desired number of replicas.'),
    statusReplicasPath: text('The JSON path of the current number of replicas.'),
    labelSelectorPath: Type.Optional(text('The JSON path of the label selector.')),
  },
  { description: 'The scale subresource.' },
);

const printerColumn = Type.Object({
  name: text('The heading.'),
  type: text('The OpenAPI type.'),
  jsonPath: text('The JSON path of the value.'),
  description: Type.Optional(text('The description of the column.', 32_768)),
  format: Type.Optional(text('The OpenAPI format.')),
  priority: Type.Optional(Type.Integer({ description: 'If above 0, only -o wide shows the column.', format: 'int32' })),
});

/** As in a CustomResourceDefinition. */
const boundSchemaVersion = Type.Object({
  name: Type.String({
    description: 'A name of the form v1 or v1beta1.',
    maxLength: 63,
    pattern: '^v[1-9][0-9]*([a-z]+[1-9][0-9]*)?$',
  }),
  served: Type.Boolean({ description: 'Whether the API server answers calls in this version.', default: true }),
  storage: Type.Boolean({ description: 'True for exactly one.' }),
  deprecated: Type.Optional(Type.Boolean({ description: 'Whether the API server warns clients of this version.' })),
  deprecationWarning: Type.Optional(text('The text of the warning.', 4096)),
  schema: Type.Unsafe<Record<string, unknown>>({
    ...opaqueObject('The OpenAPI v3 schema, with or without openAPIV3Schema around it.'),
    'x-kubernetes-map-type': 'atomic',
  }),
  subresources: Type.Optional(
    Type.Object(
      { status: Type.Optional(opaqueObject('The status subresource.')), scale: Type.Optional(scale) },
      { description: 'The enabled subresources.' },
    ),
  ),
  additionalPrinterColumns: Type.Optional(
    Type.Array(printerColumn, {
      description: 'Columns of kubectl get.',
      maxItems: 64,
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['name'],
    }),
  ),
});

const clientConfig = Type.Object(
  {
    url: Type.Optional(text('The URL.', 4096)),
    caBundle: Type.Optional(
      Type.String({
        description: 'The CA certificates that may sign the certificate of the webhook: PEM, base64-encoded.',
        format: 'byte',
        maxLength: 1_048_576,
      }),
    ),
  },
  { description: 'The address of the webhook.' },
);

const conversion = Type.Object(
  {
    strategy: oneOf(['None', 'Webhook'], {
      description: 'None: only apiVersion changes.',
    }),
    webhook: Type.Optional(
      Type.Object(
        {
          clientConfig: Type.Optional(clientConfig),
          conversionReviewVersions: Type.Optional(
            listOf(Type.String({ maxLength: 63 }), 64, {
              description: 'The versions of ConversionReview that the webhook accepts.',
            }),
          ),
        },
        { description: 'The webhook of the provider.' },
      ),
    ),
  },
  {
    description:
      'How the provider converts objects between versions. It is never copied: with strategy Webhook and several versions, the consumer serves only the version in which the konnector copies objects.',
    'x-kubernetes-validations': [
      {
        rule: "(self.strategy == 'Webhook') == has(self.webhook)",
        message:
          'strategy and webhook contradict each other; webhook is required for strategy Webhook and forbidden for None; correct one of them',
      },
    ],
  },
);

const scopes = ['Cluster', 'Namespaced'] as const;

export const boundSchemaKind = defineKind({
  resource: boundSchemas,
  description:
    'A BoundSchema describes the CustomResourceDefinition that the konnector creates for an exported resource.',
  spec: Type.Object(
    {
      informerScope: oneOf(scopes, {
        description:
          'How the konnector watches copies of a namespaced resource in the provider. Cluster: all namespaces at once. Namespaced: each namespace that the provider created for this consumer.',
      }),
      group: Type.String({ description: 'The API group of the resource.', maxLength: 253 }),
      names: crdNames('The names of the resource.'),
      scope: oneOf(scopes, { description: 'Whether the resource is cluster-scoped or namespaced.' }),
      versions: Type.Array(boundSchemaVersion, {
        description: 'The versions of the resource.',
        minItems: 1,
        maxItems: 64,
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['name'],
      }),
      conversion: Type.Optional(conversion),
    },
    { description: 'The definition of the resource.' },
  ),
  specOptional: true,
  status: Type.Object(
    {
      acceptedNames: Type.Optional(crdNames('The names that the API server has accepted.')),
      storedVersions: Type.Optional(
        listOf(Type.String({ maxLength: 63 }), 64, {
          description: 'The versions in which the consumer has stored objects.',
        }),
      ),
      conditions: Type.Optional(bindConditionList),
      instantiations: Type.Optional(
        Type.Integer({ description: 'Not used; part of the format of kube-bind.', minimum: 0 }),
      ),
    },
    { description: 'The state of the CustomResourceDefinition in the consumer.' },
  ),
  printerColumns: [readyColumn, ageColumn],
  shortNames: ['bs'],
  categories: ['kube-bindings'],
});

/** The content of `schema` in its versions is not validated and stays untrusted. */
export type BoundSchema = ObjectOf<typeof boundSchemaKind>;
