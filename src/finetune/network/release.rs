//! A batch in, each gradient out as soon as it is complete, and gone before the next part of the network is looked at.
//!
//! The network runs in parts: encoder, prenet, every decoder layer, heads with postnet. Each begins at a detached leaf,
//! and the parts are differentiated from the last to the first, the gradient of a leaf being what the part before it is
//! differentiated with. burn has no hook in its backward pass; this needs none. At no time are there more gradients than
//! one part has. Never sums batches, and cannot know the norm of all gradients: whoever clips or scales by what all of
//! them say cannot use it.

use burn::tensor::{Gradients, Tensor};

use super::{Batch, Dropout, LEARNED_SPEAKERS, Network, Parameters};
use crate::error::Result;
use crate::finetune::loss::Loss;
use crate::finetune::optimizer::Values;

/// What is done with a gradient: it may move the tensor of this name, which is not needed again.
pub type Take<'a> = dyn FnMut(&mut Parameters, &str, Values) -> Result<()> + 'a;

/// The part of the network that the tensor called `name` belongs to.
pub fn part(name: &str) -> &str {
    const LAYERS: &str = "speecht5.decoder.wrapped_decoder.layers.";
    const PRENET: &str = "speecht5.decoder.prenet";
    if let Some(number) = name.strip_prefix(LAYERS).and_then(|rest| rest.find('.')) {
        return &name[..LAYERS.len() + number];
    }
    if name.starts_with(LEARNED_SPEAKERS) {
        return PRENET;
    }
    let parts = ["speecht5.encoder", PRENET];
    parts.into_iter().find(|part| name.starts_with(part)).unwrap_or("heads")
}

/// A part of the network that waits for what its outputs are to be moved by.
struct Part<const D: usize> {
    output: Tensor<D>,
    /// The same numbers, where the next part begins.
    leaf: Tensor<D>,
}

impl<const D: usize> Part<D> {
    fn new(output: Tensor<D>) -> Self {
        let leaf = output.clone().detach().require_grad();
        Self { output, leaf }
    }

    /// Differentiates the part, its output being moved by `gradient`; `None` when nothing of it learns.
    fn backward(self, gradient: Option<Tensor<D>>) -> Option<Gradients> {
        seed(self.output, gradient).map(|seed| seed.backward())
    }
}

/// A number whose gradient at `output` is `gradient`.
fn seed<const D: usize>(output: Tensor<D>, gradient: Option<Tensor<D>>) -> Option<Tensor<1>> {
    gradient.filter(|_| output.is_tracked()).map(|gradient| (output * gradient.autodiff()).sum())
}

impl Network<'_> {
    /// The loss of `batch`; its gradients are given to `take`, from the last part of the network to the first. A loss
    /// that is not finite gives none: the gradient of |x| is finite even where x is not.
    ///
    /// # Errors
    /// Those of `take`; the parts that it was given before stay as it left them.
    pub fn release(
        &self,
        weights: &mut Parameters,
        batch: &Batch,
        dropout: &mut Dropout,
        take: &mut Take,
    ) -> Result<Loss> {
        let mask = self.token_mask(batch);
        let encoder = Part::new(self.encode(weights, batch, mask.clone(), dropout));
        let prenet = Part::new(self.prenet(weights, batch, dropout));
        let mut x = prenet.leaf.clone();
        let masks = [self.causal_mask(x.dims()[1]), mask];
        let mut layers = Vec::new();
        for layer in 0..self.config.decoder_layers {
            let inputs = [x, encoder.leaf.clone()];
            let (output, attention) = self.decoder_layer(weights, layer, inputs, masks.clone(), dropout);
            let (output, attention) = (Part::new(output), Part::new(attention));
            x = output.leaf.clone();
            layers.push((output, attention));
        }
        let attentions = layers.iter().map(|(_, attention)| attention.leaf.clone()).collect();
        let outputs = self.heads(weights, x.clone(), attentions, dropout);
        let loss = Loss::new(outputs, batch, self.config, &self.device);
        if !loss.total().into_scalar::<f32>().is_finite() {
            return Ok(loss);
        }

        let mut waiting = weights.trained();
        let mut give = |weights: &mut Parameters, found: &mut Gradients| -> Result<()> {
            let mut later = Vec::new();
            for name in waiting.drain(..) {
                match weights.take_gradient(&name, found)? {
                    Some(gradient) => take(weights, &name, gradient)?,
                    None => later.push(name),
                }
            }
            waiting = later;
            Ok(())
        };
        let mut found = loss.total().backward();
        give(weights, &mut found)?;
        let mut moved = x.grad_remove(&mut found);
        // Every cross-attention has a say in how the encoded tokens are to be moved.
        let mut tokens: Option<Tensor<3>> = None;
        while let Some((output, attention)) = layers.pop() {
            let guided = seed(attention.output, attention.leaf.grad_remove(&mut found));
            let seeds = [seed(output.output, moved.take()), guided].into_iter().flatten();
            let Some(seed) = seeds.reduce(|a, b| a + b) else { break };
            let mut found = seed.backward();
            give(weights, &mut found)?;
            let before = layers.last().map_or(&prenet.leaf, |(output, _)| &output.leaf);
            moved = before.grad_remove(&mut found);
            let of_tokens = encoder.leaf.grad_remove(&mut found);
            tokens = tokens.into_iter().chain(of_tokens).reduce(|a, b| a + b);
        }
        for mut found in [prenet.backward(moved), encoder.backward(tokens)].into_iter().flatten() {
            give(weights, &mut found)?;
        }
        Ok(loss)
    }
}
