import { type KubeObject, keyOf, type ObjectName } from '../api/object.ts';
import { mutatingWebhookConfigurations, secrets, validatingWebhookConfigurations } from '../api/resources.ts';
import { describe } from '../kit/errors.ts';
import { own } from '../kit/json-value.ts';
import type { Cluster } from '../kube/cluster.ts';
import type { Projected, Store } from '../kube/store.ts';
import { fromData, type Material } from './material.ts';
import { type PathSegment, readSegment } from './path-segment.ts';

/** Label of the Secret: the server created it and may write it. */
export const madeByServerLabel = 'certificates.drawbridge.dev/made-by-server';

/** The certificate Secret, as the server reads it. */
export interface SecretView extends Projected {
  /** Whether the server created it. */
  readonly ours: boolean;
  readonly material?: Material;
  /** Why there is no usable material, as a clause. */
  readonly problem?: string;
  readonly segment?: PathSegment;
}

/** A webhook configuration of either kind. */
export interface ConfigurationView extends Projected {
  readonly name: string;
  /** In the order of the object. `caBundle` is PEM; it and `path` are empty if absent, and `path` is empty for webhooks with a `url`. */
  readonly webhooks: readonly { readonly name: string; readonly caBundle: string; readonly path: string }[];
}

/** Watches of the objects that the certificate controller writes. */
export interface CertificateStores {
  /** Holds at most one Secret. */
  readonly secret: Store<SecretView>;
  readonly configurations: readonly Store<ConfigurationView>[];
}

/** Watches the Secret, and the webhook configurations that have the label of drawbridge and one of `names`. */
export function openCertificateStores(
  cluster: Cluster,
  secret: ObjectName & { readonly namespace: string },
  names: readonly string[],
): CertificateStores {
  const watchedNames = new Set(names);
  const viewConfiguration = (object: KubeObject): ConfigurationView | undefined =>
    watchedNames.has(object.metadata.name) ? configurationView(object) : undefined;
  return {
    secret: cluster.watch({
      resource: secrets,
      namespace: secret.namespace,
      fieldSelector: `metadata.name=${secret.name}`,
      project: viewSecret,
    }).store,
    configurations: [mutatingWebhookConfigurations, validatingWebhookConfigurations].map(
      (resource) =>
        cluster.watch({ resource, labelSelector: 'app.kubernetes.io/name=drawbridge', project: viewConfiguration })
          .store,
    ),
  };
}

const projected = ({ metadata }: KubeObject): Projected => ({
  key: keyOf(metadata),
  uid: metadata.uid ?? '',
  resourceVersion: metadata.resourceVersion ?? '',
});

function viewSecret(object: KubeObject): SecretView {
  const ours = own(own(own(object, 'metadata'), 'labels'), madeByServerLabel) === 'true';
  const data = own(object, 'data');
  const segment = readSegment(data);
  const common = { ...projected(object), ours, ...(segment ? { segment } : {}) };
  try {
    return { ...common, material: fromData(data) };
  } catch (error) {
    return { ...common, problem: describe(error) };
  }
}

function configurationView(object: KubeObject): ConfigurationView {
  const webhooks = own(object, 'webhooks');
  return {
    ...projected(object),
    name: object.metadata.name,
    webhooks: (Array.isArray(webhooks) ? webhooks : []).map((webhook) => {
      const client = own(webhook, 'clientConfig');
      return {
        name: textOf(own(webhook, 'name')),
        caBundle: Buffer.from(textOf(own(client, 'caBundle')), 'base64').toString(),
        path: textOf(own(own(client, 'service'), 'path')),
      };
    }),
  };
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');
