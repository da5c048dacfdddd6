import { apiVersionOf, type KubeObject, type Resource } from '../api/object.ts';
import { listIn, own } from '../kit/json-value.ts';
import { resourcePath } from './api-paths.ts';
import type { ListOptions } from './client.ts';
import { isExpired, TransportError } from './errors.ts';
import { text } from './fields.ts';
import type { Transport } from './transport.ts';

export interface Page {
  readonly items: KubeObject[];
  /** The whole list's. */
  readonly resourceVersion: string;
  /** The list restarted with this page, which invalidates the earlier pages. */
  readonly restarted: boolean;
}

const PAGE_SIZE = 500;

/** A list that expires between pages restarts once (`restarted`). Throws as `Client.list`. */
export async function* listPages(
  transport: Pick<Transport, 'request'>,
  resource: Resource,
  options: ListOptions & { readonly retry?: 'never' } = {},
): AsyncGenerator<Page> {
  let token: string | undefined;
  let restartsLeft = 1;
  let restarted = false;
  do {
    const answer = await nextPage(transport, resource, options, token).catch((error: unknown) => {
      if (token === undefined || restartsLeft-- === 0 || !isExpired(error)) throw error;
      return undefined;
    });
    if (!answer) {
      token = undefined;
      restarted = true;
      continue;
    }
    token = answer.continue;
    yield { items: answer.items, resourceVersion: answer.resourceVersion, restarted };
    restarted = false;
  } while (token !== undefined || restarted);
}

async function nextPage(
  transport: Pick<Transport, 'request'>,
  resource: Resource,
  options: ListOptions & { readonly retry?: 'never' },
  token: string | undefined,
) {
  const answer = await transport.request({
    method: 'GET',
    path: resourcePath(resource, { namespace: options.namespace }),
    query: {
      limit: options.limit ?? PAGE_SIZE,
      labelSelector: options.labelSelector,
      fieldSelector: options.fieldSelector,
      // A continue token already names the resourceVersion of the list.
      resourceVersion: token === undefined ? options.resourceVersion : undefined,
      continue: token,
    },
    signal: options.signal,
    ...(options.retry ? { retry: options.retry } : {}),
  });
  return parsePage(answer, resource);
}

function parsePage(answer: unknown, resource: Resource) {
  const metadata = own(answer, 'metadata');
  const resourceVersion = text(metadata, 'resourceVersion');
  if (resourceVersion === undefined) {
    throw new TransportError(`list of ${resource.plural}: the answer is not a Kubernetes list`, undefined, false);
  }
  return {
    items: listIn(answer, 'items')
      .filter(isKubeObject)
      .map((item) => withType(item, resource)),
    resourceVersion,
    continue: text(metadata, 'continue'),
  };
}

/** A name in the metadata is the only field that every API object must have. */
export function isKubeObject(value: unknown): value is KubeObject {
  return text(own(value, 'metadata'), 'name') !== undefined;
}

/** Items of a list lack kind and apiVersion. */
function withType(item: KubeObject, resource: Resource): KubeObject {
  item.apiVersion ??= apiVersionOf(resource);
  item.kind ??= resource.kind;
  return item;
}
