import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { certifyingObjects } from '../../src/access/policies/shape.ts';
import type { KubeObject } from '../../src/api/object.ts';

type Json = Record<string, unknown>;

/** The chart's policies and bindings on which the server relies, as the API server stores them. */
export function certifyingManifests(): (KubeObject & { spec: Json })[] {
  const path = join(import.meta.dirname, '../../charts/drawbridge/templates/policies.yaml');
  const text = readFileSync(path, 'utf8')
    .replaceAll(/^\{\{-? (?:if|end|\$).*\}\}$/gm, '')
    .replaceAll(/\{\{.*?\}\}/g, '{}');
  const documents = parseAllDocuments(text).map((document) => document.toJS() as KubeObject & { spec: Json });
  return certifyingObjects.map(({ resource, name }, index) => {
    const found = documents.find(({ kind, metadata }) => kind === resource.kind && metadata.name === name);
    if (!found) throw new Error(`the chart has no ${resource.kind} ${name}`);
    const spec = withDefaults(found.spec);
    return { ...found, metadata: { name, uid: `uid-${index}`, generation: 1, resourceVersion: '1' }, spec };
  });
}

function withDefaults(spec: Json): Json {
  const constraints = spec['matchConstraints'] as (Json & { resourceRules: Json[] }) | undefined;
  if (!constraints) return spec;
  const matchConstraints = {
    matchPolicy: 'Equivalent',
    namespaceSelector: {},
    objectSelector: {},
    ...constraints,
    resourceRules: constraints.resourceRules.map((rule) => ({ scope: '*', ...rule })),
  };
  return { ...spec, matchConstraints };
}
