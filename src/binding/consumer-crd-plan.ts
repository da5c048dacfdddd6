import { bindVersion, crdRevisionAnnotation } from '../api/binding/names.ts';
import type { KubeObject } from '../api/object.ts';
import { customResourceDefinition } from '../api/schema/crd.ts';
import type { Kind } from '../api/schema/kind.ts';
import { type JsonObject, own } from '../kit/json-value.ts';
import { records } from './stores/common-view.ts';

/** Raised whenever what the schemas say changes in a way that consumers should get. */
const revision = 1;

export type CrdStep =
  | { readonly do: 'create'; readonly object: KubeObject }
  /** A merge patch, void once the CRD has changed in between. */
  | { readonly do: 'patch'; readonly patch: unknown }
  /** It serves what we need, or will as soon as the API server has looked at it. */
  | { readonly do: 'wait'; readonly established: boolean };

/** The CRD of a kind that we install in the consumer, marked as ours. */
export function consumerCrd(kind: Kind): KubeObject {
  const crd = customResourceDefinition(kind);
  return { ...crd, metadata: { ...crd.metadata, annotations: { [crdRevisionAnnotation]: String(revision) } } };
}

/**
 * What to do about a CRD that may be there already, put there by us, by kube-bind or by whoever manages the cluster. It is left as it
 * is unless it lacks what we need or is an older one of ours, and no version that it has is ever dropped: objects may be stored in it.
 */
export function planConsumerCrd(found: KubeObject | undefined, wanted: KubeObject): CrdStep {
  if (!found) return { do: 'create', object: wanted };
  // Going: what we would write has no effect, and once it is gone it is created.
  if (found.metadata.deletionTimestamp !== undefined) return { do: 'wait', established: false };
  if (servesWhatWeNeed(found) && !isOlderOfOurs(found)) return { do: 'wait', established: isEstablished(found) };
  return { do: 'patch', patch: patchOf(found, wanted) };
}

function servesWhatWeNeed(found: KubeObject): boolean {
  const version = versionsOf(found).find((one) => own(one, 'name') === bindVersion);
  return own(version, 'served') === true && own(own(version, 'subresources'), 'status') !== undefined;
}

function isOlderOfOurs({ metadata }: KubeObject): boolean {
  const mark = metadata.annotations?.[crdRevisionAnnotation];
  return mark !== undefined && /^\d{1,9}$/.test(mark) && Number(mark) < revision;
}

function isEstablished({ status }: KubeObject): boolean {
  return records(own(status, 'conditions')).some(
    (condition) => own(condition, 'type') === 'Established' && own(condition, 'status') === 'True',
  );
}

function patchOf(found: KubeObject, wanted: KubeObject): unknown {
  const theirs = new Map(versionsOf(found).map((version) => [own(version, 'name'), version]));
  const ours = versionsOf(wanted).map((version) => {
    const name = own(version, 'name');
    const kept = name === bindVersion || isOlderOfOurs(found) ? undefined : theirs.get(name);
    theirs.delete(name);
    return kept ? notStored(kept) : version;
  });
  return {
    metadata: {
      uid: found.metadata.uid,
      resourceVersion: found.metadata.resourceVersion,
      annotations: wanted.metadata.annotations,
    },
    spec: { names: own(wanted.spec, 'names'), versions: [...ours, ...[...theirs.values()].map(notStored)] },
  };
}

const notStored = (version: JsonObject): JsonObject => ({ ...version, storage: false });

function versionsOf({ spec }: KubeObject): JsonObject[] {
  return records(own(spec, 'versions'));
}
