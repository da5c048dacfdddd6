import { isRecord } from '../../kit/json-value.ts';

/** What others act upon: they give the pod a cloud identity or secrets, or put a sidecar of a mesh into it. */
const actedUpon = [
  'iam.amazonaws.com/',
  'eks.amazonaws.com/',
  'iam.gke.io/',
  'azure.workload.identity/',
  'vault.hashicorp.com/',
  'consul.hashicorp.com/',
  'sidecar.istio.io/',
  'proxy.istio.io/',
  'linkerd.io/',
  'config.linkerd.io/',
  'dapr.io/',
];

/** Values that turn such a thing off, which must not come on instead. */
const off: ReadonlySet<unknown> = new Set(['false', 'disabled']);

/** The annotations of a workload's pod template that its access pods get too; podAnnotations and patches may add any. */
export function copiedAnnotations(annotations: unknown): unknown {
  if (!isRecord(annotations)) return annotations;
  const kept = Object.entries(annotations).filter(
    ([key, value]) => off.has(value) || !actedUpon.some((prefix) => key.startsWith(prefix)),
  );
  return Object.fromEntries(kept);
}
