import { apiVersionOf, type KubeObject, type Resource } from '../../src/api/object.ts';
import { customResourceDefinitions } from '../../src/api/resources.ts';
import type { IsolationName } from '../../src/binding/stores/provider-stores.ts';

type Scope = 'Cluster' | 'Namespaced';

/** A kind that a provider exports. */
export interface FixtureKind {
  readonly inConsumer: Resource;
  readonly inProvider: Resource;
  /** The CRD in the provider. */
  readonly crd: KubeObject;
}

export interface FixtureKinds {
  /** Namespaced in both clusters. */
  readonly kettles: FixtureKind;
  /** Cluster-scoped in the consumer; with isolation Namespaced, namespaced in the provider. */
  readonly ovens: FixtureKind;
}

/** Two kinds in a group of their own, so that tests on the same plane do not interfere. */
export function fixtureKinds(group: string, isolation: IsolationName): FixtureKinds {
  return {
    kettles: fixtureKind({ group, plural: 'kettles', kind: 'Kettle' }),
    ovens: fixtureKind(
      { group, plural: 'ovens', kind: 'Oven' },
      { consumer: 'Cluster', provider: isolation === 'Namespaced' ? 'Namespaced' : 'Cluster' },
    ),
  };
}

/** Default scopes: namespaced in both clusters. */
export function fixtureKind(
  names: Pick<Resource, 'group' | 'plural' | 'kind'>,
  scopes: { readonly consumer: Scope; readonly provider: Scope } = { consumer: 'Namespaced', provider: 'Namespaced' },
): FixtureKind {
  const resource = (scope: Scope): Resource => ({ ...names, version: 'v1', namespaced: scope === 'Namespaced' });
  const inProvider = resource(scopes.provider);
  return { inConsumer: resource(scopes.consumer), inProvider, crd: crdOf(inProvider) };
}

/** An object of either kind; `spec` has a `heat`, and may have a `note`, `tags` and `secretRefs`. */
export function fixtureObject(
  { inConsumer }: FixtureKind,
  name: { readonly namespace?: string; readonly name: string },
  spec: Readonly<Record<string, unknown>> = { heat: 100 },
): KubeObject {
  return { apiVersion: apiVersionOf(inConsumer), kind: inConsumer.kind, metadata: { ...name }, spec };
}

function crdOf({ group, version, plural, kind, namespaced }: Resource): KubeObject {
  return {
    apiVersion: apiVersionOf(customResourceDefinitions),
    kind: customResourceDefinitions.kind,
    metadata: { name: `${plural}.${group}`, labels: { 'kube-bind.io/exported': 'true' } },
    spec: {
      group,
      scope: namespaced ? 'Namespaced' : 'Cluster',
      names: { plural, kind, singular: kind.toLowerCase(), listKind: `${kind}List` },
      versions: [
        {
          name: version,
          served: true,
          storage: true,
          subresources: { status: {} },
          additionalPrinterColumns: [{ name: 'Result', type: 'string', jsonPath: '.status.result' }],
          schema: { openAPIV3Schema: schema },
        },
      ],
    },
  };
}

const text = { type: 'string' };

const schema = {
  type: 'object',
  required: ['spec'],
  properties: {
    spec: {
      type: 'object',
      required: ['heat'],
      properties: {
        heat: { type: 'integer' },
        note: text,
        tags: { type: 'object', additionalProperties: text },
        secretRefs: {
          type: 'array',
          items: { type: 'object', required: ['name'], properties: { name: text, namespace: text } },
        },
      },
    },
    // A top-level field besides spec and status, as in some kinds.
    recipe: { type: 'object', additionalProperties: text },
    status: {
      type: 'object',
      properties: { result: text, heat: { type: 'integer' }, notes: { type: 'array', items: text } },
    },
  },
};
