import { isDeepStrictEqual } from 'node:util';
import type { KubeconfigSetter } from '../../api/inventory/cluster-inventory.ts';
import { sizeViolation } from '../../inventory/policy/entry-size.ts';
import { isRecord, own } from '../../kit/json-value.ts';
import type { UserInfo } from '../codec.ts';
import { allow, deny, type Handler } from '../decision.ts';
import { PatchBuilder } from '../json-patch.ts';

const setterPath = ['spec', 'kubeconfigSetBy'] as const;

/**
 * Mutating webhook of entries: writes who set the reference to the kubeconfig Secret, and overwrites any claimed value. An unchanged
 * reference keeps its setter. Without a reference, removes the field.
 */
export const attestKubeconfigSetter: Handler = {
  decide({ operation, object, oldObject, user }) {
    const spec = own(object, 'spec');
    if (!isRecord(spec)) {
      return deny({ code: 'InvalidObject', message: 'spec must be an object', field: 'spec', status: 422 });
    }
    const [ref, before] = [own(spec, 'kubeconfigSecretRef') ?? undefined, own(oldObject, 'spec')];
    const claimed = own(spec, 'kubeconfigSetBy') ?? undefined;
    if (ref === undefined) {
      return claimed === undefined ? allow : { patch: new PatchBuilder(object).remove([...setterPath]).ops };
    }
    const attested = own(before, 'kubeconfigSetBy') ?? undefined;
    const isSameRef = operation === 'UPDATE' && isDeepStrictEqual(ref, own(before, 'kubeconfigSecretRef'));
    if (isSameRef && attested !== undefined && isDeepStrictEqual(claimed, attested)) return allow;
    if (user.username === '') {
      return deny({
        code: 'MissingIdentity',
        message:
          'this call has no authenticated user; the server uses a kubeconfig only on behalf of the user who set it; ' +
          'log in and try again',
        status: 403,
      });
    }
    // A caller cannot change the field alone. Manifests omit it, which changes nothing.
    const setter = isSameRef && attested !== undefined ? attested : setterOf(user);
    return { patch: new PatchBuilder(object).set([...setterPath], setter).ops };
  },
};

/** Omits the extra keys that only describe the credential: SubjectAccessReviews do not need them. */
function setterOf({ username, uid, groups, extra }: UserInfo): KubeconfigSetter {
  const kept = Object.entries(extra).filter(([key]) => !key.startsWith('authentication.kubernetes.io/'));
  return {
    username,
    uid,
    groups: [...groups],
    ...(kept.length > 0 ? { extra: Object.fromEntries(kept.map(([key, values]) => [key, [...values]])) } : {}),
  };
}

/** Validating webhook of entries: denies writes that make an entry too large to reconcile, or that make a too large one larger. */
export const validateEntrySize: Handler = {
  decide({ object, oldObject }) {
    const violation = sizeViolation(oldObject, object);
    return violation ? deny(violation) : allow;
  },
};
