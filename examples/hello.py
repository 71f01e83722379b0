import jax
import jax.numpy as jnp

device = jax.devices("strop")[0]  # JAX_PLATFORMS=strop makes it the default

@jax.jit
def step(w, x, y):
    loss, grad = jax.value_and_grad(lambda w: jnp.mean((jnp.tanh(x @ w) - y) ** 2))(w)
    return w - 0.1 * grad, loss

w, loss = step(*jax.device_put((jnp.ones((4, 2)), jnp.ones((8, 4)), jnp.zeros((8, 2))), device))
print("loss", loss, "on", loss.devices())
