//! A batch in, each gradient out as soon as it is complete, and gone before the next part of the network is looked at.
//!
//! The network runs in parts: embedding, every encoder layer, prenet, every decoder layer, heads with postnet. Each begins
//! at a detached leaf, and the parts are differentiated from the last to the first, the gradient of a leaf being what the part before it is
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
    const LAYERS: [&str; 2] =
        ["speecht5.decoder.wrapped_decoder.layers.", "speecht5.encoder.wrapped_encoder.layers."];
    const PRENET: &str = "speecht5.decoder.prenet";
    for layers in LAYERS {
        if let Some(number) = name.strip_prefix(layers).and_then(|rest| rest.find('.')) {
            return name.get(..layers.len() + number).unwrap_or(name);
        }
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
        let leaf = output.clone().detach();
        // Where nothing before it learns, nothing asks how it is to be moved.
        let leaf = if output.is_tracked() { leaf.require_grad() } else { leaf };
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
        let embedded = Part::new(self.embed(weights, batch, dropout));
        let distances = Part::new(self.relative_positions(weights, batch.tokens()));
        let mut encoder: Vec<Part<3>> = Vec::new();
        for layer in 0..self.config.encoder_layers {
            let x = encoder.last().unwrap_or(&embedded).leaf.clone();
            let inputs = [x, distances.leaf.clone()];
            encoder.push(Part::new(self.encoder_layer(weights, layer, inputs, mask.clone(), dropout)));
        }
        let encoded = encoder.last().unwrap_or(&embedded).leaf.clone();
        let prenet = Part::new(self.prenet(weights, batch, dropout));
        let mut x = prenet.leaf.clone();
        let masks = [self.causal_mask(x.dims()[1]), mask];
        let mut layers = Vec::new();
        for layer in 0..self.config.decoder_layers {
            let inputs = [x, encoded.clone()];
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
            let of_tokens = encoded.grad_remove(&mut found);
            tokens = tokens.into_iter().chain(of_tokens).reduce(|a, b| a + b);
        }
        if let Some(mut found) = prenet.backward(moved) {
            give(weights, &mut found)?;
        }
        // So has every encoder layer in what the distances between tokens are to be moved by.
        let mut apart: Option<Tensor<3>> = None;
        while let Some(layer) = encoder.pop() {
            let Some(mut found) = layer.backward(tokens.take()) else { break };
            give(weights, &mut found)?;
            tokens = encoder.last().unwrap_or(&embedded).leaf.grad_remove(&mut found);
            let of_distances = distances.leaf.grad_remove(&mut found);
            apart = apart.into_iter().chain(of_distances).reduce(|a, b| a + b);
        }
        for mut found in [distances.backward(apart), embedded.backward(tokens)].into_iter().flatten() {
            give(weights, &mut found)?;
        }
        Ok(loss)
    }
}
