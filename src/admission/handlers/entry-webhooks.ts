import { isDeepStrictEqual } from 'node:util';
import type { KubeconfigSetter } from '../../api/inventory/cluster-inventory.ts';
import { abandonAnnotation, abandonedByAnnotation, maxComponents } from '../../api/inventory/names.ts';
import { sizeViolation } from '../../inventory/policy/entry-size.ts';
import { settingWarnings } from '../../inventory/policy/setting-warnings.ts';
import type { Violation } from '../../inventory/policy/violation.ts';
import { isRecord, own } from '../../kit/json-value.ts';
import type { Review, UserInfo } from '../codec.ts';
import { allow, deny, type Handler } from '../decision.ts';
import { PatchBuilder } from '../json-patch.ts';
import type { InventoryPorts } from '../ports.ts';

/** `spec.kubeconfigSetBy`, or the annotations with the users who abandoned components. */
interface FieldWrite {
  readonly path: readonly [string, ...string[]];
  /** Undefined removes the field. */
  readonly value: unknown;
  /** The value names the caller, who must then be authenticated. */
  readonly byCaller: boolean;
}

/**
 * Mutating webhook of entries: writes who set the reference to the kubeconfig Secret, and who
 * abandoned a component, whatever the caller sent. Without a change, the user stays. Denies with
 * `InvalidObject`, `TooManyAbandonments`, or `MissingIdentity`.
 */
export const attestEntry: Handler = {
  decide(review) {
    const { object, user } = review;
    if (!isRecord(own(object, 'spec'))) {
      return deny({
        code: 'InvalidObject',
        message: 'spec is missing or not an object; write it as an object',
        field: 'spec',
        status: 422,
      });
    }
    const violation = abandonmentsViolation(review);
    if (violation) return deny(violation);
    const writes = [...kubeconfigSetterWrite(review), ...abandonersWrite(review)];
    if (writes.length === 0) return allow;
    if (user.username === '' && writes.some(({ byCaller }) => byCaller)) {
      return deny({
        code: 'MissingIdentity',
        message:
          'this call has no authenticated user; only a user can set spec.kubeconfigSecretRef and abandon annotations; log in and try again',
        status: 403,
      });
    }
    const patch = new PatchBuilder(object);
    for (const { path, value } of writes) {
      if (value === undefined) patch.remove([...path]);
      else patch.set([...path], value);
    }
    return { patch: patch.ops };
  },
};

/** Empty if the object already names the user who set `spec.kubeconfigSecretRef`. */
function kubeconfigSetterWrite({ operation, object, oldObject, user }: Review): FieldWrite[] {
  const path = ['spec', 'kubeconfigSetBy'] as const;
  const spec = own(object, 'spec');
  const before = own(oldObject, 'spec');
  const ref = own(spec, 'kubeconfigSecretRef') ?? undefined;
  const claimed = own(spec, 'kubeconfigSetBy') ?? undefined;
  if (ref === undefined) return claimed === undefined ? [] : [{ path, value: undefined, byCaller: false }];
  const attested = own(before, 'kubeconfigSetBy') ?? undefined;
  const isSameRef = operation === 'UPDATE' && isDeepStrictEqual(ref, own(before, 'kubeconfigSecretRef'));
  if (!isSameRef || attested === undefined) return [{ path, value: settingUser(user), byCaller: true }];
  // A caller cannot change kubeconfigSetBy alone, and a manifest without it does not change it.
  return isDeepStrictEqual(claimed, attested) ? [] : [{ path, value: attested, byCaller: false }];
}

/** More than 64 components after the write, and more than before it. */
function abandonmentsViolation({ object, oldObject }: Review): Violation | undefined {
  const count = componentsIn(annotationsOf(object)).length;
  // If users set too many while the webhook was absent, a write can still remove some of them.
  if (count <= maxComponents || count <= componentsIn(annotationsOf(oldObject)).length) return undefined;
  return {
    code: 'TooManyAbandonments',
    message:
      `the annotations abandon.inventory.drawbridge.dev and abandoned-by.inventory.drawbridge.dev would name ${count} components; ` +
      `at most ${maxComponents} are allowed; remove the annotations of components that the entry does not have`,
    field: 'metadata.annotations',
    status: 422,
  };
}

/** One operation for the whole map: PatchBuilder would copy it for each annotation. */
function abandonersWrite({ object, oldObject, user }: Review): FieldWrite[] {
  const after = annotationsOf(object);
  const before = annotationsOf(oldObject);
  const value = { ...after };
  let isChanged = false;
  let byCaller = false;
  for (const component of componentsIn(after)) {
    const userKey = abandonedByAnnotation(component);
    const reason = own(after, abandonAnnotation(component));
    const isSame = reason !== undefined && reason === own(before, abandonAnnotation(component));
    const isNew = reason !== undefined && !isSame;
    // The user of an unchanged abandonment may be unknown; the caller did not set it.
    const abandoner = isNew ? user.username : isSame ? own(before, userKey) : undefined;
    if (abandoner === own(after, userKey)) continue;
    isChanged = true;
    byCaller ||= isNew;
    if (abandoner === undefined) delete value[userKey];
    else value[userKey] = abandoner;
  }
  return isChanged ? [{ path: ['metadata', 'annotations'], value, byCaller }] : [];
}

function annotationsOf(object: unknown): Readonly<Record<string, unknown>> {
  const annotations = own(own(object, 'metadata'), 'annotations');
  return isRecord(annotations) ? annotations : {};
}

function componentsIn(annotations: Readonly<Record<string, unknown>>): string[] {
  const keys = Object.keys(annotations);
  const prefixes = [abandonAnnotation(''), abandonedByAnnotation('')];
  const names = prefixes.flatMap((prefix) =>
    keys.filter((key) => key.startsWith(prefix)).map((key) => key.slice(prefix.length)),
  );
  return [...new Set(names)];
}

/** Without extra keys of the credential, which SubjectAccessReviews do not need. */
function settingUser({ username, uid, groups, extra }: UserInfo): KubeconfigSetter {
  const kept = Object.entries(extra).filter(([key]) => !key.startsWith('authentication.kubernetes.io/'));
  return {
    username,
    uid,
    groups: [...groups],
    ...(kept.length > 0 ? { extra: Object.fromEntries(kept.map(([key, values]) => [key, [...values]])) } : {}),
  };
}

/**
 * Validating webhook of entries: denies growth above 65,536 bytes, and warns about settings of
 * components that do not run for the entry.
 */
export function validateEntry({ registered }: Pick<InventoryPorts, 'registered'>): Handler {
  return {
    decide({ subResource, object, oldObject }) {
      const violation = sizeViolation(oldObject, object);
      if (violation) return deny(violation);
      const warnings = subResource === '' ? settingWarnings(object, oldObject, registered()) : [];
      return warnings.length > 0 ? { warnings } : allow;
    },
  };
}
