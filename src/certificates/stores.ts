import { type KubeObject, keyOf, type ObjectName } from '../api/object.ts';
import {
  apiServices,
  mutatingWebhookConfigurations,
  secrets,
  validatingWebhookConfigurations,
} from '../api/resources.ts';
import { describe } from '../kit/errors.ts';
import { own } from '../kit/json-value.ts';
import type { Cluster } from '../kube/cluster.ts';
import type { Projected, Store } from '../kube/store.ts';
import { fromData, type Material } from './material.ts';

/** On the Secret: the server created it and may write it. */
export const madeByServerLabel = 'certificates.drawbridge.dev/made-by-server';

export interface SecretView extends Projected {
  /** The server created it. */
  readonly ours: boolean;
  /** Absent if the data of the Secret is unusable. */
  readonly material?: Material;
  /** Why `material` is absent, as a clause. */
  readonly problem?: string;
}

/** Through these the API server calls the server: webhook configurations, or an APIService. */
export interface ConfigurationView extends Projected {
  readonly name: string;
  /** The webhooks in the order of the object; an APIService has one. */
  readonly endpoints: readonly EndpointView[];
}

/** Where the API server finds the server, and which authorities it trusts. */
interface EndpointView {
  /** To the part of the object that has `caBundle`. */
  readonly pointer: string;
  readonly namePointer: string;
  readonly name: string;
  /** PEM; empty if absent. */
  readonly caBundle: string;
}

/** The server writes their `caBundle`. */
export interface ConfigurationNames {
  readonly webhooks: readonly string[];
  readonly apiServices: readonly string[];
}

export interface CertificateStores {
  /** Holds at most one Secret. */
  readonly secret: Store<SecretView>;
  readonly configurations: readonly Store<ConfigurationView>[];
}

/** Of webhook configurations, only the named ones with the label of drawbridge. */
export function openCertificateStores(
  cluster: Cluster,
  secret: ObjectName & { readonly namespace: string },
  names: ConfigurationNames,
): CertificateStores {
  const webhookNames = new Set(names.webhooks);
  const viewWebhooks = (object: KubeObject): ConfigurationView | undefined =>
    webhookNames.has(object.metadata.name) ? webhooksView(object) : undefined;
  const webhookKinds = webhookNames.size === 0 ? [] : [mutatingWebhookConfigurations, validatingWebhookConfigurations];
  return {
    secret: cluster.watch({
      resource: secrets,
      namespace: secret.namespace,
      fieldSelector: `metadata.name=${secret.name}`,
      project: viewSecret,
    }).store,
    configurations: [
      ...webhookKinds.map(
        (resource) =>
          cluster.watch({ resource, labelSelector: 'app.kubernetes.io/name=drawbridge', project: viewWebhooks }).store,
      ),
      // RBAC can limit a watch to a name only if the watch selects that name.
      ...names.apiServices.map(
        (name) =>
          cluster.watch({ resource: apiServices, fieldSelector: `metadata.name=${name}`, project: viewApiService })
            .store,
      ),
    ],
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
  const common = { ...projected(object), ours };
  try {
    return { ...common, material: fromData(data) };
  } catch (error) {
    return { ...common, problem: describe(error) };
  }
}

function webhooksView(object: KubeObject): ConfigurationView {
  const webhooks = own(object, 'webhooks');
  return {
    ...projected(object),
    name: object.metadata.name,
    endpoints: (Array.isArray(webhooks) ? webhooks : []).map((webhook, index) => {
      const client = own(webhook, 'clientConfig');
      return {
        pointer: `/webhooks/${index}/clientConfig`,
        namePointer: `/webhooks/${index}/name`,
        name: textOf(own(webhook, 'name')),
        caBundle: caBundleOf(client),
      };
    }),
  };
}

function viewApiService(object: KubeObject): ConfigurationView {
  const { name } = object.metadata;
  const caBundle = caBundleOf(own(object, 'spec'));
  const endpoint = { pointer: '/spec', namePointer: '/metadata/name', name, caBundle };
  return { ...projected(object), name, endpoints: [endpoint] };
}

const caBundleOf = (part: unknown): string => Buffer.from(textOf(own(part, 'caBundle')), 'base64').toString();

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');
