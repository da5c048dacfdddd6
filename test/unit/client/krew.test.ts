import assert from 'node:assert/strict';
import { krewManifest } from '../../../release/krew-manifest.ts';

describe('the Krew manifest', () => {
  const manifest = krewManifest({
    version: '0.1.0',
    baseUrl: 'https://releases.example/v0.1.0',
    archives: ['amd64', 'arm64'].map((arch) => ({
      name: `drawbridge-0.1.0-linux-${arch}.tar.gz`,
      platform: { os: 'linux', arch },
      sha256: 'a'.repeat(64),
    })),
  });
  const { metadata, spec } = manifest;

  // The rules that `krew index` applies to every plugin.
  it('has the kind, a safe name, a version, and one line of description', () => {
    assert.equal(manifest.apiVersion, 'krew.googlecontainertools.github.com/v1alpha2');
    assert.equal(manifest.kind, 'Plugin');
    assert.match(metadata.name, /^[\w-]+$/);
    assert.match(spec.version, /^v\d+\.\d+\.\d+(-[\w.]+)?$/);
    assert.ok(spec.shortDescription !== '' && !/[\r\n]/.test(spec.shortDescription));
  });

  it('has platforms with an archive, its hash, a program, files, and a selector of os and arch', () => {
    assert.equal(spec.platforms.length, 2);
    for (const { uri, sha256, bin, files, selector } of spec.platforms) {
      assert.ok(URL.canParse(uri) && uri.endsWith('.tar.gz'));
      assert.match(sha256, /^[a-f0-9]{64}$/);
      assert.ok(files.length > 0 && files.every(({ from, to }) => from !== '' && to !== ''));
      assert.ok(files.some(({ from }) => from === bin));
      assert.deepEqual(Object.keys(selector.matchLabels).sort(), ['arch', 'os']);
    }
  });

  it('follows the guide of names: lower case, no kube, no version', () => {
    assert.match(metadata.name, /^(?!.*kube)[a-z]+(-[a-z]+)*$/);
  });
});
