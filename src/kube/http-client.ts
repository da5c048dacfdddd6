import type { KubeObject, ObjectName, Resource } from '../api/object.ts';
import { serviceAccounts } from '../api/resources.ts';
import { groupPath, resourcePath } from './api-paths.ts';
import type { AccessQuestion, CallOptions, Client, DeleteOptions, ObjectList, WriteOptions } from './client.ts';
import { isNotFound, TransportError } from './errors.ts';
import { isKubeObject, listPages } from './list-pages.ts';
import { tokenUserOf } from './token-user.ts';
import type { CallSpec, Transport } from './transport.ts';

/** Writes below it are `slow` (`Pools`). Deletions are not, and no code applies RBAC objects. */
const rbacPath = groupPath({ group: 'rbac.authorization.k8s.io', version: 'v1' });
const authorizationPath = groupPath({ group: 'authorization.k8s.io', version: 'v1' });
const authenticationPath = groupPath({ group: 'authentication.k8s.io', version: 'v1' });

/** Then the caller can try another connection; an API server normally answers in milliseconds. */
const URGENT_MS = 5000;

interface ClientOptions {
  /** Before every attempt of a write; an error ends the call unsent. */
  readonly beforeWrite?: () => void;
  /** As `Client.urgent`. */
  readonly urgent?: boolean;
}

/** Opens no connections itself, and needs no close. */
export function createClient(transport: Transport, options: ClientOptions = {}): Client {
  const { beforeWrite } = options;
  const send = (spec: CallSpec): Promise<unknown> =>
    transport.request(options.urgent ? { ...spec, pool: 'urgent', timeoutMs: URGENT_MS } : spec);
  const object = async (spec: CallSpec): Promise<KubeObject> => {
    const answer = await send(spec);
    if (isKubeObject(answer)) return answer;
    throw new TransportError(`${spec.method} ${spec.path}: the answer is not a Kubernetes object`, undefined, false);
  };
  const write = (method: 'POST' | 'PUT' | 'PATCH', path: string, body: unknown, options: WriteOptions, type?: string) =>
    object({
      method,
      path,
      body,
      query: writeQuery(options),
      signal: options.signal,
      pool: path.startsWith(rbacPath) ? 'slow' : 'quick',
      beforeTry: beforeWrite,
      ...(type === undefined ? {} : { contentType: type }),
    });
  const pathOf = (resource: Resource, name: ObjectName, options: { subresource?: string }) =>
    resourcePath(resource, { ...name, subresource: options.subresource });

  return {
    get: async (resource, name, options = {}) =>
      object({ method: 'GET', path: pathOf(resource, name, options), signal: options.signal }),

    async list(resource, options): Promise<ObjectList> {
      let items: KubeObject[] = [];
      let resourceVersion = '';
      for await (const page of listPages({ request: send }, resource, options)) {
        items = page.restarted ? page.items : items.concat(page.items);
        resourceVersion = page.resourceVersion;
      }
      return { items, resourceVersion };
    },

    create: async (resource, body, options = {}) => {
      const { namespace, name } = body.metadata;
      const target = options.subresource === undefined ? { namespace } : { namespace, name, ...options };
      return write('POST', resourcePath(resource, target), body, options);
    },
    mergePatch: async (resource, name, patch, options = {}) =>
      write('PATCH', pathOf(resource, name, options), patch, options, 'application/merge-patch+json'),
    jsonPatch: async (resource, name, ops, options = {}) =>
      write('PATCH', pathOf(resource, name, options), ops, options, 'application/json-patch+json'),
    replace: async (resource, body, options = {}) =>
      write('PUT', pathOf(resource, body.metadata, options), body, options),
    apply: async (resource, body, options) =>
      object({
        method: 'PATCH',
        path: pathOf(resource, body.metadata, options),
        query: { ...writeQuery(options), force: options.force },
        body,
        // JSON is YAML.
        contentType: 'application/apply-patch+yaml',
        signal: options.signal,
        beforeTry: beforeWrite,
      }),

    async delete(resource, name, options = {}) {
      try {
        const answer = await send({
          method: 'DELETE',
          path: resourcePath(resource, name),
          body: deleteBody(options),
          signal: options.signal,
          beforeTry: beforeWrite,
        });
        return isKubeObject(answer) && answer.metadata.finalizers?.length ? { held: answer } : 'deleted';
      } catch (error) {
        if (isNotFound(error)) return 'absent';
        throw error;
      }
    },

    async createToken(serviceAccount, request, options = {}) {
      const { audiences, expirationSeconds, boundObject } = request;
      const answer = await send({
        method: 'POST',
        path: resourcePath(serviceAccounts, { ...serviceAccount, subresource: 'token' }),
        body: {
          apiVersion: 'authentication.k8s.io/v1',
          kind: 'TokenRequest',
          spec: { audiences, expirationSeconds, boundObjectRef: boundObject },
        },
        signal: options.signal,
        beforeTry: beforeWrite,
      });
      const { token, expirationTimestamp } = status(answer);
      if (typeof token !== 'string' || typeof expirationTimestamp !== 'string') {
        throw new TransportError(
          'TokenRequest: the answer contains no token or no expirationTimestamp',
          undefined,
          false,
        );
      }
      return { token, expiresAt: expirationTimestamp };
    },

    async isAllowed(question, options = {}) {
      const answer = await send({
        method: 'POST',
        path: `${authorizationPath}/subjectaccessreviews`,
        body: accessReview(question),
        retry: 'idempotent',
        signal: options.signal,
      });
      return status(answer)['allowed'] === true;
    },

    async reviewToken(token, { audiences, signal } = {}) {
      const answer = await send({
        method: 'POST',
        path: `${authenticationPath}/tokenreviews`,
        body: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', spec: { token, audiences } },
        retry: 'idempotent',
        signal,
      });
      return tokenUserOf(status(answer), audiences);
    },

    leaderOnly: (check) => createClient(transport, { ...options, beforeWrite: check }),

    urgent: () => createClient(transport, { ...options, urgent: true }),

    raw: (path: string, options: CallOptions = {}) => send({ method: 'GET', path, signal: options.signal }),
  };
}

function writeQuery({ fieldManager, dryRun, fieldValidation }: WriteOptions) {
  return { fieldManager, dryRun: dryRun ? 'All' : undefined, fieldValidation };
}

function deleteBody({ uid, resourceVersion, propagation, gracePeriodSeconds }: DeleteOptions) {
  return {
    apiVersion: 'v1',
    kind: 'DeleteOptions',
    preconditions: uid === undefined && resourceVersion === undefined ? undefined : { uid, resourceVersion },
    propagationPolicy: propagation,
    gracePeriodSeconds,
  };
}

function accessReview({ user, groups, uid, extra, ...resourceAttributes }: AccessQuestion) {
  return {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SubjectAccessReview',
    spec: { user, groups, uid, extra, resourceAttributes },
  };
}

function status(answer: unknown): Record<string, unknown> {
  const found = typeof answer === 'object' && answer !== null && 'status' in answer ? answer.status : undefined;
  return typeof found === 'object' && found !== null ? (found as Record<string, unknown>) : {};
}
