import type { KubeObject, ObjectName } from '../../../src/api/object.ts';

const labels = { app: 'kitchen' };

/** A claim on Secrets with the label `app: kitchen`. */
export const kitchenClaim = { group: '', resource: 'secrets', selector: { labelSelector: { matchLabels: labels } } };

/** A Secret with that label, or others. Its key `key` has the text. */
export const kitchenSecret = (
  where: ObjectName,
  text: string,
  others: Readonly<Record<string, string>> = labels,
): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { ...where, labels: others },
  data: { key: Buffer.from(text).toString('base64') },
});
