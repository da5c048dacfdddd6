export function Mine() {
  return <h1>Mine</h1>;
}
