import type { KubeObject } from '../../api/object.ts';
import { own } from '../../kit/json-value.ts';
import { commonView, records, strings, text } from './common-view.ts';
import type { CrdView } from './views.ts';

/** Without the schemas, which are most of a CRD. */
export function crdView(object: KubeObject): CrdView | undefined {
  const common = commonView(object);
  if (!common) return undefined;
  const { spec, status } = object;
  const conditions = records(own(status, 'conditions')).flatMap(condition);
  return {
    ...common,
    established: conditions.some(({ type, status: holds }) => type === 'Established' && holds === 'True'),
    scope: own(spec, 'scope') === 'Cluster' ? 'Cluster' : 'Namespaced',
    conditions,
    acceptedNames: own(status, 'acceptedNames'),
    storedVersions: strings(own(status, 'storedVersions')),
  };
}

function condition(value: unknown): CrdView['conditions'][number][] {
  const type = text(value, 'type');
  const status = own(value, 'status');
  if (!type || (status !== 'True' && status !== 'False' && status !== 'Unknown')) return [];
  return [
    {
      type,
      status,
      reason: text(value, 'reason') ?? '',
      message: text(value, 'message') ?? '',
      lastTransitionTime: text(value, 'lastTransitionTime') ?? '',
    },
  ];
}
